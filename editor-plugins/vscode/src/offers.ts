/**
 * What became of a suggestion, for the local statistics of `codespec stats`.
 *
 * The editor tells extensions only that a whole suggestion was accepted (it runs the item's
 * command). That one was shown is taken from its arriving while the cursor is still where it was
 * asked for; that a part was accepted, from a change that inserts more than a typed character of it
 * at its place.
 */

import * as vscode from 'vscode';

export interface Listener {
  shown(item: vscode.InlineCompletionItem): void;
  /** `length`: UTF-16 units from the start of the item's text, a line end being one. */
  partiallyAccepted(item: vscode.InlineCompletionItem, length: number): void;
}

interface Offer {
  readonly document: vscode.TextDocument;
  readonly position: vscode.Position;
  readonly item: vscode.InlineCompletionItem;
}

export class Offers {
  private offer: Offer | undefined;
  private accepting = false;

  constructor(private readonly listener: Listener) {}

  /** `items` came for `position` of `document`, which was at `version` then. */
  arrived(
    items: readonly vscode.InlineCompletionItem[],
    document: vscode.TextDocument,
    version: number,
    position: vscode.Position,
  ): void {
    const editor = vscode.window.activeTextEditor;
    const item = items[0];
    this.offer = undefined;
    if (
      item &&
      editor?.document === document &&
      document.version === version &&
      editor.selection.active.isEqual(position)
    ) {
      this.offer = { document, position, item };
      this.listener.shown(item);
    }
  }

  /** Whether an item came for where the cursor is now. That it was hidden, nothing tells. */
  get isShown(): boolean {
    const editor = vscode.window.activeTextEditor;
    const { offer } = this;
    return (
      offer !== undefined &&
      editor?.document === offer.document &&
      editor.selection.active.isEqual(offer.position)
    );
  }

  /** The cursor moved: an item that it has left does not come again. */
  moved(): void {
    if (!this.isShown) this.offer = undefined;
  }

  changed(event: vscode.TextDocumentChangeEvent): void {
    const offer = this.offer;
    const change = event.contentChanges[0];
    if (!offer || !change || event.document !== offer.document) return;
    this.offer = undefined;
    const { insertText } = offer.item;
    const text = withoutReturns(typeof insertText === 'string' ? insertText : insertText.value);
    const inserted = withoutReturns(change.text);
    const isPart =
      change.range.start.isEqual(offer.position) &&
      inserted.length < text.length &&
      inserted.length > (this.accepting ? 0 : 1) &&
      text.startsWith(inserted);
    if (isPart) this.listener.partiallyAccepted(offer.item, inserted.length);
  }

  /** Runs an editor command that accepts a part. */
  async accept(command: string): Promise<void> {
    this.accepting = true;
    try {
      await vscode.commands.executeCommand(command);
    } finally {
      this.accepting = false;
    }
  }
}

/** The editor inserts the line ends of the document, the server sends its own. */
function withoutReturns(text: string): string {
  return text.replaceAll('\r\n', '\n');
}
