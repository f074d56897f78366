/** The item in the status bar: one state, its reason, and what to do about it. */

import * as vscode from 'vscode';

export type State = 'ready' | 'thinking' | 'paused' | 'off' | 'error';

export interface Status {
  readonly state: State;
  readonly reason: string;
}

/** What the server says of itself: parameters of `didChangeStatus`. */
export interface ServerStatus {
  readonly busy: boolean;
  readonly kind: 'Normal' | 'Warning' | 'Error' | 'Inactive';
  readonly message: string;
  /** A suggestion is ready for whom asks: see `codespec.trigger`. */
  readonly suggestion?: boolean;
}

export interface Action {
  readonly title: string;
  readonly command: string;
}

const LOOKS: Record<State, { icon: string; actions: Action[] }> = {
  ready: {
    icon: '$(sparkle)',
    actions: [{ title: 'Suggest now', command: 'codespec.trigger' }],
  },
  thinking: {
    icon: '$(sync~spin)',
    actions: [{ title: 'Show log', command: 'codespec.showLog' }],
  },
  paused: {
    icon: '$(debug-pause)',
    actions: [{ title: 'Explain', command: 'codespec.explain' }],
  },
  off: {
    icon: '$(circle-slash)',
    actions: [{ title: 'Enable', command: 'codespec.enable' }],
  },
  error: {
    icon: '$(error)',
    actions: [
      { title: 'Restart', command: 'codespec.restart' },
      { title: 'Run doctor', command: 'codespec.doctor' },
      { title: 'Show log', command: 'codespec.showLog' },
    ],
  },
};

const INSTALL: Action[] = [
  { title: 'Create the Python environment', command: 'codespec.install' },
  { title: 'Name the program in the settings', command: 'codespec.openPathSetting' },
];

/** A request that is answered sooner does not show. */
const SHOW_THINKING_AFTER_MS = 200;

export class StatusItem implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;
  private readonly changed = new vscode.EventEmitter<Status>();
  private server: ServerStatus = { busy: true, kind: 'Normal', message: 'starting the server' };
  private fault = '';
  private missing = false;
  private nRequests = 0;
  private slow = false;
  private timer: NodeJS.Timeout | undefined;
  private shown = '';

  readonly onDidChange = this.changed.event;

  /** Of the document at hand. `whyOff`: why the user wants no suggestions; '' where they do.
   * `isServed`: whether the server is told of it. */
  constructor(
    private readonly whyOff: () => string,
    private readonly isServed: () => boolean,
  ) {
    this.item = vscode.window.createStatusBarItem('codespec', vscode.StatusBarAlignment.Right, 100);
    this.item.name = 'codespec';
    this.item.command = 'codespec.menu';
    this.update();
    this.item.show();
  }

  get status(): Status {
    if (this.fault) return { state: 'error', reason: this.fault };
    const off = this.whyOff();
    if (off) return { state: 'off', reason: off };
    const { busy, kind, message } = this.server;
    if (kind === 'Error') return { state: 'error', reason: message };
    if (!this.isServed()) return { state: 'paused', reason: 'not a file of this machine' };
    if (kind === 'Inactive') return { state: 'paused', reason: message.replace(/^paused: /, '') };
    if (busy) return { state: 'thinking', reason: message };
    if (this.slow) return { state: 'thinking', reason: 'asking the model' };
    return { state: 'ready', reason: message.replace(/^ready: /, '') };
  }

  get actions(): Action[] {
    return this.missing ? INSTALL : LOOKS[this.status.state].actions;
  }

  setServer(server: ServerStatus): void {
    this.server = server;
    this.update();
  }

  /** An error on this side of the server; '' when it is over. `missing`: no program was found. */
  setFault(fault: string, missing = false): void {
    this.fault = fault;
    this.missing = missing;
    this.update();
  }

  /** Counts `request` as under way until it settles. */
  async during<T>(request: Promise<T>): Promise<T> {
    this.nRequests += 1;
    this.timer ??= setTimeout(() => {
      this.slow = true;
      this.update();
    }, SHOW_THINKING_AFTER_MS);
    try {
      return await request;
    } finally {
      this.nRequests -= 1;
      if (!this.nRequests) {
        clearTimeout(this.timer);
        this.timer = undefined;
        this.slow = false;
        this.update();
      }
    }
  }

  update(): void {
    const status = this.status;
    const isReady = status.state === 'ready' && this.server.suggestion === true;
    const icon = isReady ? '$(lightbulb-sparkle)' : LOOKS[status.state].icon;
    const words = `codespec: ${status.state}, ${status.reason}`;
    if (words === this.shown) return;
    this.shown = words;
    this.item.text = `${icon} codespec`;
    this.item.accessibilityInformation = { label: words };
    this.item.backgroundColor =
      status.state === 'error' ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
    const tooltip = new vscode.MarkdownString();
    tooltip.isTrusted = { enabledCommands: this.actions.map(({ command }) => command) };
    tooltip.appendMarkdown(`**codespec: ${status.state}**\n\n`);
    tooltip.appendText(status.reason);
    const links = this.actions.map(({ title, command }) => `[${title}](command:${command})`);
    tooltip.appendMarkdown(`\n\n${links.join(' | ')}`);
    this.item.tooltip = tooltip;
    this.changed.fire(status);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.item.dispose();
    this.changed.dispose();
  }
}
