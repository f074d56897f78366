/** Drawing a next edit: old text struck through, new text behind it, and a hint at the cursor that
 * says where it lies and how many there are. */

import * as vscode from 'vscode';
import type { NextEdit } from './nextEdits';

const MAX_SHOWN = 120;

export class EditView implements vscode.Disposable {
  private readonly old = vscode.window.createTextEditorDecorationType({
    textDecoration: 'line-through',
    backgroundColor: new vscode.ThemeColor('diffEditor.removedTextBackground'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.infoForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Center,
  });
  private readonly added = vscode.window.createTextEditorDecorationType({
    after: { backgroundColor: new vscode.ThemeColor('diffEditor.insertedTextBackground') },
  });
  private readonly hint = vscode.window.createTextEditorDecorationType({
    after: {
      color: new vscode.ThemeColor('editorCodeLens.foreground'),
      margin: '0 0 0 2em',
      fontStyle: 'italic',
    },
  });

  /** `isHere`: the cursor is in the edit's lines. */
  show(edit: NextEdit, range: vscode.Range, editor: vscode.TextEditor, isHere: boolean): void {
    const { document, selection } = editor;
    const isThisDocument = edit.textDocument.uri === document.uri.toString();
    if (isThisDocument) {
      const changed = withoutCommon(document, range, edit);
      const text = changed.text.replaceAll('\r\n', '\n').replace(/^\n|\n$/g, '');
      const [first = '', ...more] = text.split('\n');
      const rest = more.length ? ` … +${more.length.toString()} lines` : '';
      const shown = clipped(first) + rest;
      if (!changed.range.isEmpty) editor.setDecorations(this.old, [changed.range]);
      if (shown) {
        const hoverMessage = new vscode.MarkdownString().appendCodeblock(edit.text);
        const at = new vscode.Range(changed.range.end, changed.range.end);
        editor.setDecorations(this.added, [
          // Blanks at its ends would not be drawn.
          {
            range: at,
            hoverMessage,
            renderOptions: { after: { contentText: shown.replaceAll(' ', '\u00a0') } },
          },
        ]);
      }
    }
    const words: string[] = [];
    if (!isHere) {
      const line = `line ${(range.start.line + 1).toString()}`;
      const file = vscode.workspace.asRelativePath(vscode.Uri.parse(edit.textDocument.uri));
      words.push(`→ ${isThisDocument ? line : `${file}, ${line}`}`);
    }
    if (edit.count > 1) words.push(`(${edit.number.toString()} of ${edit.count.toString()})`);
    if (!words.length) return;
    const end = document.lineAt(selection.active.line).range.end;
    editor.setDecorations(this.hint, [
      {
        range: new vscode.Range(end, end),
        renderOptions: { after: { contentText: `${words.join(' ')}  Tab ✓  Esc ✗` } },
      },
    ]);
  }

  hide(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      for (const type of [this.old, this.added, this.hint]) editor.setDecorations(type, []);
    }
  }

  dispose(): void {
    for (const type of [this.old, this.added, this.hint]) type.dispose();
  }
}

/** What differs of an edit within a line: characters that are the same at both ends stay. */
function withoutCommon(
  document: vscode.TextDocument,
  range: vscode.Range,
  edit: NextEdit,
): { range: vscode.Range; text: string } {
  const { old, text } = edit;
  if (!range.isSingleLine || text.includes('\n')) return { range, text };
  const most = Math.min(old.length, text.length);
  let before = 0;
  while (before < most && old[before] === text[before]) before += 1;
  let after = 0;
  while (after < most - before && old[old.length - 1 - after] === text[text.length - 1 - after]) {
    after += 1;
  }
  const start = range.start.translate(0, before);
  const end = range.end.translate(0, -after);
  return {
    range: document.validateRange(new vscode.Range(start, end)),
    text: text.slice(before, text.length - after),
  };
}

function clipped(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
