/**
 * Tells the server where the user is: its status is about that document, and it reads ahead what a
 * first suggestion there needs.
 */

import * as vscode from 'vscode';

/** A cursor that only passes does not count. */
const REST_MS = 100;

export class Focus implements vscode.Disposable {
  private timer: NodeJS.Timeout | undefined;
  private told = '';

  /** `tell`: the document, and the place in it where suggestions are wanted. */
  constructor(
    private readonly tell: (document: vscode.TextDocument, position?: vscode.Position) => void,
    private readonly isWanted: (document: vscode.TextDocument) => boolean,
  ) {}

  /** Another document is at the front, or the server knows nothing yet. */
  now(editor = vscode.window.activeTextEditor): void {
    clearTimeout(this.timer);
    if (!editor) return;
    const { document, selection } = editor;
    this.told = line(editor);
    this.tell(document, this.isWanted(document) ? selection.active : undefined);
  }

  /** The cursor of `editor` moved. */
  moved(editor: vscode.TextEditor): void {
    if (editor !== vscode.window.activeTextEditor) return;
    clearTimeout(this.timer);
    if (line(editor) !== this.told) {
      this.timer = setTimeout(() => {
        this.now();
      }, REST_MS);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}

function line({ document, selection }: vscode.TextEditor): string {
  return `${selection.active.line.toString()} ${document.uri.toString()}`;
}
