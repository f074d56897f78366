/** Reports of the command line, shown as documents: `codespec explain` and `codespec doctor`. */

import * as vscode from 'vscode';
import { run } from './cli';

const SCHEME = 'codespec-report';

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
    const { code, stdout, stderr } = await vscode.window.withProgress(
      {
        location: vscode.ProgressLocation.Notification,
        title: `codespec: ${title}`,
        cancellable: true,
      },
      (_, token) => run(program, args, token),
    );
    const said = [stdout, stderr].filter(Boolean).join('\n');
    const text = said || `codespec ${title} said nothing; exit code ${String(code)}`;
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
