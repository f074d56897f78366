/** Where the user wants suggestions: everywhere, but for what is switched off. */

import * as vscode from 'vscode';

const WORKSPACE_KEY = 'off';
const MINUTE_MS = 60_000;
/** With it the editor shows nothing that extensions suggest, and asks for nothing. */
export const OF_EDITOR = 'editor.inlineSuggest.enabled';

export class Switches implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  /** Files switched off until the window closes. */
  private readonly files = new Set<string>();

  /** When suggestions come again, in milliseconds as of `Date.now()`; 0 where they do. */
  private snoozedUntil = 0;
  private timer: NodeJS.Timeout | undefined;

  readonly onDidChange = this.changed.event;

  /** `memory`: of the workspace, outside of its folders. */
  constructor(private readonly memory: vscode.Memento) {}

  /** Why there are no suggestions in `document`; '' where there are. */
  whyOff(document: vscode.TextDocument | undefined): string {
    const left = Math.ceil((this.snoozedUntil - Date.now()) / MINUTE_MS);
    if (left > 0) return `snoozed for ${left.toString()} more minute${left > 1 ? 's' : ''}`;
    if (this.memory.get(WORKSPACE_KEY)) return 'disabled in this workspace';
    if (!document) return '';
    if (this.files.has(fileOf(document))) return 'disabled in this file';
    const found = setting(document);
    if (!found) return '';
    // A repository brings its own settings: they may restrict, never more.
    const ofWorkspace = [
      found.workspaceValue,
      found.workspaceFolderValue,
      found.workspaceLanguageValue,
      found.workspaceFolderLanguageValue,
    ];
    if (ofWorkspace.includes(false)) return 'disabled by the settings of the workspace';
    const ofLanguage = found.globalLanguageValue;
    if (ofLanguage === false) return `disabled for ${document.languageId}`;
    if (ofLanguage === undefined && found.globalValue === false) {
      return 'disabled in your settings';
    }
    const isShown = vscode.workspace.getConfiguration('', document).get<boolean>(OF_EDITOR, true);
    return isShown ? '' : `disabled for all extensions by ${OF_EDITOR}`;
  }

  /** No suggestions in this window for so long; 0: they come again. */
  snooze(minutes: number): void {
    clearInterval(this.timer);
    this.snoozedUntil = minutes > 0 ? Date.now() + minutes * MINUTE_MS : 0;
    this.changed.fire();
    if (minutes > 0) {
      this.timer = setInterval(() => {
        if (Date.now() >= this.snoozedUntil) clearInterval(this.timer);
        this.changed.fire(); // the time that is left is told
      }, MINUTE_MS);
    }
  }

  toggleDocument(document: vscode.TextDocument): void {
    const file = fileOf(document);
    if (!this.files.delete(file)) this.files.add(file);
    this.changed.fire();
  }

  async toggleWorkspace(): Promise<void> {
    await this.memory.update(WORKSPACE_KEY, this.memory.get(WORKSPACE_KEY) ? undefined : true);
    this.changed.fire();
  }

  async toggleLanguage(document: vscode.TextDocument): Promise<void> {
    const found = setting(document);
    const isOn = found?.globalLanguageValue ?? found?.globalValue ?? true;
    await vscode.workspace
      .getConfiguration('codespec', document)
      .update('enabled', !isOn, vscode.ConfigurationTarget.Global, true);
    this.changed.fire();
  }

  /** Undoes whatever `whyOff` names; settings of the workspace, and of the editor, are left to the
   * user. */
  async enable(document: vscode.TextDocument | undefined): Promise<void> {
    if (Date.now() < this.snoozedUntil) {
      this.snooze(0);
    } else if (this.memory.get(WORKSPACE_KEY)) {
      await this.toggleWorkspace();
    } else if (document && this.files.has(fileOf(document))) {
      this.toggleDocument(document);
    } else if (this.whyOff(document).endsWith('settings of the workspace')) {
      await vscode.commands.executeCommand('workbench.action.openWorkspaceSettings', {
        query: 'codespec.enabled',
      });
    } else if (this.whyOff(document).endsWith(OF_EDITOR)) {
      await vscode.commands.executeCommand('workbench.action.openSettings', OF_EDITOR);
    } else if (document && this.whyOff(document)) {
      await this.toggleLanguage(document);
    }
  }

  dispose(): void {
    clearInterval(this.timer);
    this.changed.dispose();
  }
}

/** As a URI. The cells of a notebook are documents in one file, told apart by fragments. */
function fileOf({ uri }: vscode.TextDocument): string {
  return uri.with({ fragment: '' }).toString();
}

function setting(document: vscode.TextDocument) {
  return vscode.workspace.getConfiguration('codespec', document).inspect<boolean>('enabled');
}
