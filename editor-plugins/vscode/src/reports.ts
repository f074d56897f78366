/** Reports of the command line, shown as documents: `codespec explain` and `codespec doctor`. */

import { execFile } from 'node:child_process';
import * as os from 'node:os';
import * as vscode from 'vscode';

const SCHEME = 'codespec-report';
const TIMEOUT_MS = 120_000;

export class Reports implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly texts = new Map<string, string>();
  private readonly registration: vscode.Disposable;

  readonly onDidChange = this.changed.event;

  constructor(private readonly program: () => string | undefined) {
    this.registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? '';
  }

  /** Runs `codespec ...args` and shows what it says beside the editor. */
  async show(title: string, args: string[]): Promise<void> {
    const program = this.program();
    if (!program) {
      await vscode.commands.executeCommand('codespec.menu');
      return;
    }
    const text = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: `codespec: ${title}` },
      () => output(program, args),
    );
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `codespec ${title}` });
    this.texts.set(uri.path, text);
    this.changed.fire(uri);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
      preview: true,
    });
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}

/** FILE:LINE:COL as the command line counts: from 1, in characters. */
export function place(document: vscode.TextDocument, position: vscode.Position): string {
  const before = document.lineAt(position.line).text.slice(0, position.character);
  const column = Array.from(before).length + 1;
  return `${document.uri.fsPath}:${(position.line + 1).toString()}:${column.toString()}`;
}

function output(program: string, args: string[]): Promise<string> {
  const env = { ...process.env, NO_COLOR: '1', COLUMNS: '100' };
  return new Promise((resolve) => {
    execFile(
      program,
      args,
      { cwd: os.homedir(), env, timeout: TIMEOUT_MS },
      (_, stdout, stderr) => {
        resolve([stdout, stderr].filter(Boolean).join('\n'));
      },
    );
  });
}
