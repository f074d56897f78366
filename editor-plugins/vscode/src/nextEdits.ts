/**
 * Next edits: asked for after each change, shown where they lie. A key goes there, the same key makes
 * the edit. One that only adds text to the cursor's line is ghost text; of others the editor shows
 * extensions' edits nowhere by itself, so they are drawn.
 */

import * as vscode from 'vscode';
import { EditView } from './editView';

/** As the server sends it. */
export interface NextEdit {
  readonly text: string;
  readonly old: string;
  readonly range: { readonly start: vscode.Position; readonly end: vscode.Position };
  readonly textDocument: { readonly uri: string; readonly version: number | null };
  readonly command: { readonly command: string; readonly arguments: readonly string[] };
  readonly number: number;
  readonly count: number;
}

/** The language server, as far as it is asked about edits. */
export interface EditServer {
  request(method: string, params: object): Promise<{ readonly edits: readonly NextEdit[] }>;
  notify(method: string, params: object): void;
}

const DEBOUNCE_MS = 60;
/** So long an edit waits for what is suggested at the cursor. */
const HOLD_MS = 400;
const CONTEXT = 'codespec.hasNextEdit';

export class NextEdits implements vscode.Disposable, vscode.InlineCompletionItemProvider {
  private current: NextEdit | undefined;
  private isTold = false;
  private isGhost = false;
  private isMaking = false;
  private isHeld = false;
  private nHolds = 0;
  private hasKeys = false;
  private keysGiven: Thenable<unknown> = Promise.resolve();
  private nDrawn = 0;
  private nAsked = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly view = new EditView();
  private readonly subscriptions: readonly { dispose(): unknown }[];

  constructor(
    private readonly server: EditServer,
    private readonly isWanted: (document: vscode.TextDocument) => boolean,
    private readonly isSuggested: () => boolean,
  ) {
    this.subscriptions = [
      this.view,
      vscode.languages.registerInlineCompletionItemProvider({ scheme: 'file' }, this),
      vscode.workspace.onDidChangeTextDocument((event) => {
        this.changed(event);
      }),
      vscode.window.onDidChangeTextEditorSelection(() => {
        this.draw();
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.draw();
      }),
    ];
  }

  /** Whether the edit is shown as ghost text: what the server suggests at the cursor must wait. */
  get showsGhost(): boolean {
    return this.isGhost;
  }

  private changed({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const editor = vscode.window.activeTextEditor;
    if (!contentChanges.length || this.isMaking || editor?.document !== document) return;
    this.clear();
    if (document.uri.scheme === 'file' && this.isWanted(document)) {
      this.timer = setTimeout(() => void this.ask(), DEBOUNCE_MS);
    }
  }

  /** Forgets the edit, and every answer that is under way. */
  clear(): void {
    clearTimeout(this.timer);
    this.nAsked += 1;
    this.set(undefined);
  }

  private set(edit: NextEdit | undefined): void {
    this.current = edit;
    this.isTold = this.isGhost = false;
    this.draw();
  }

  /** The server was asked what to suggest at the cursor: an edit waits for the answer. */
  async suggesting<T>(answer: Promise<T>): Promise<T> {
    this.nHolds += 1;
    const number = this.nHolds;
    const release = (): void => {
      if (number !== this.nHolds) return;
      this.isHeld = false;
      this.draw();
    };
    this.isHeld = true;
    const timer = setTimeout(release, HOLD_MS);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      release();
    }
  }

  private async ask(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor) return;
    const { document } = editor;
    const version = document.version;
    this.nAsked += 1;
    const number = this.nAsked;
    const { edits } = await this.server.request(
      'textDocument/copilotInlineEdit',
      question(editor, version),
    );
    const isOld = number !== this.nAsked || document.version !== version;
    if (isOld || vscode.window.activeTextEditor?.document !== document) return;
    this.set(edits[0]);
  }

  /** The edit as an item at the cursor, where it is one: within the line, its old text in its new
   * text, nothing of it taken away. */
  private asGhost(editor: vscode.TextEditor): vscode.InlineCompletionItem | undefined {
    const edit = this.current;
    const cursor = editor.selection.active;
    if (!edit || edit.textDocument.uri !== editor.document.uri.toString()) return undefined;
    const range = rangeOf(edit);
    const isHere = range.isSingleLine && range.contains(cursor) && !edit.text.includes('\n');
    if (!isHere || !isSubsequence(edit.old, edit.text)) return undefined;
    const before = editor.document.getText(new vscode.Range(range.start, cursor));
    if (!edit.text.startsWith(before)) return undefined;
    const item = new vscode.InlineCompletionItem(edit.text, range);
    item.command = {
      title: '',
      command: 'codespec.nextEditMade',
      arguments: [edit.command.arguments[0]],
    };
    return item;
  }

  provideInlineCompletionItems(document: vscode.TextDocument): vscode.InlineCompletionItem[] {
    const editor = vscode.window.activeTextEditor;
    const item = this.isGhost && editor?.document === document && this.asGhost(editor);
    return item ? [item] : [];
  }

  /** Whether a suggestion at the cursor is shown, or is about to be: one thing is offered at a
   * time. */
  private get isCovered(): boolean {
    return !this.isGhost && (this.isHeld || this.isSuggested());
  }

  private draw(): void {
    const editor = vscode.window.activeTextEditor;
    this.view.hide();
    const edit = this.isCovered ? undefined : this.current;
    this.nDrawn += 1;
    const number = this.nDrawn;
    this.giveKeys(edit !== undefined);
    if (!editor || !edit) return;
    if (!this.isTold) {
      this.isTold = true;
      this.server.notify('textDocument/didShowInlineEdit', { item: { command: edit.command } });
      this.isGhost = this.asGhost(editor) !== undefined;
      if (this.isGhost) {
        void vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
      }
    }
    if (this.isGhost) return;
    // Not before the keys that it names do what it says.
    void this.keysGiven.then(() => {
      if (number === this.nDrawn) this.view.show(edit, rangeOf(edit), editor, isAt(edit, editor));
    });
  }

  /** The keys are for an edit, or not. */
  private giveKeys(hasKeys: boolean): void {
    if (this.hasKeys === hasKeys) return;
    this.hasKeys = hasKeys;
    this.keysGiven = vscode.commands.executeCommand('setContext', CONTEXT, hasKeys);
  }

  /** Goes to the edit, or makes it where the cursor is in its lines already. */
  async go(): Promise<void> {
    const edit = this.current;
    if (!edit || this.isCovered) return;
    const range = rangeOf(edit);
    const active = vscode.window.activeTextEditor;
    if (active && isAt(edit, active)) {
      await this.make(edit, active, range);
      return;
    }
    const uri = vscode.Uri.parse(edit.textDocument.uri);
    const isOpen = active?.document.uri.toString() === uri.toString();
    const editor = isOpen ? active : await vscode.window.showTextDocument(uri, { preview: false });
    if (!stands(edit, editor.document)) {
      this.clear();
      return;
    }
    editor.selection = new vscode.Selection(range.start, range.start);
    editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    this.draw();
  }

  private async make(
    edit: NextEdit,
    editor: vscode.TextEditor,
    range: vscode.Range,
  ): Promise<void> {
    if (!stands(edit, editor.document)) {
      this.clear();
      return;
    }
    this.isMaking = true;
    try {
      const isMade = await editor.edit((builder) => {
        builder.replace(range, edit.text);
      });
      if (!isMade) return;
    } finally {
      this.isMaking = false;
      this.clear();
    }
    await this.made(edit.command.arguments[0]);
  }

  /** An edit was made: the next one is asked for at once. */
  async made(id: unknown): Promise<void> {
    this.clear();
    await vscode.commands.executeCommand('codespec.nextEditAccepted', id);
    await this.ask();
  }

  /** The user does not want the edit: it does not come again here. */
  dismiss(): void {
    if (this.current && !this.isCovered) {
      this.server.notify('textDocument/didDismissInlineEdit', {
        item: { command: this.current.command },
      });
    }
    this.clear();
  }

  /** Lists all places beside the cursor. */
  async list(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor) return;
    const { document, selection } = editor;
    const { edits } = await this.server.request(
      'textDocument/nextEdits',
      question(editor, document.version),
    );
    if (!edits.length) {
      await vscode.window.showInformationMessage('codespec: no place is likely to want an edit.');
      return;
    }
    const places = edits.map(
      (edit) => new vscode.Location(vscode.Uri.parse(edit.textDocument.uri), rangeOf(edit)),
    );
    await vscode.commands.executeCommand(
      'editor.action.peekLocations',
      document.uri,
      selection.active,
      places,
      'peek',
    );
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const subscription of this.subscriptions) subscription.dispose();
  }
}

function question({ document, selection }: vscode.TextEditor, version: number): object {
  const { line, character } = selection.active;
  return {
    textDocument: { uri: document.uri.toString(), version },
    position: { line, character },
  };
}

function rangeOf({ range: { start, end } }: NextEdit): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

/** Whether the cursor is in the edit's lines. */
function isAt(edit: NextEdit, editor: vscode.TextEditor): boolean {
  const { line } = editor.selection.active;
  const { start, end } = edit.range;
  const isHere = edit.textDocument.uri === editor.document.uri.toString();
  return isHere && line >= start.line && line <= end.line;
}

/** Whether the edit's old text is still where it was. */
function stands(edit: NextEdit, document: vscode.TextDocument): boolean {
  const isThere = edit.textDocument.uri === document.uri.toString();
  return isThere && document.getText(rangeOf(edit)).replaceAll('\r\n', '\n') === edit.old;
}

/** Whether all characters of `part` stand in `text`, in their order. */
function isSubsequence(part: string, text: string): boolean {
  let at = 0;
  for (const character of part) {
    at = text.indexOf(character, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
