/** codespec in VS Code: starts the language server and shows what it says. No completion logic. */

import * as vscode from 'vscode';
import { offerToInstall, registerCommands } from './commands';
import { Focus } from './focus';
import { NextEdits } from './nextEdits';
import { Offers } from './offers';
import { Programs } from './program';
import { Reports } from './reports';
import { isServed, Server } from './server';
import { RESTRAINING } from './settings';
import { StatusItem, type Status } from './status';
import { OF_EDITOR, Switches } from './switches';

/** For other extensions, and tests. */
export interface Api {
  readonly status: Status;
  readonly onDidChangeStatus: vscode.Event<Status>;
}

/** Settings of the server process; it reads them when it starts. */
const OF_SERVER = [
  ...['path', 'model', 'draftModel', 'edits.model', 'maxTokens', 'indexWorkspace', 'server'],
  ...RESTRAINING,
];

let running: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<Api> {
  const log = vscode.window.createOutputChannel('codespec', { log: true });
  const switches = new Switches(context.workspaceState);
  const atHand = (): vscode.TextDocument | undefined => vscode.window.activeTextEditor?.document;
  const status = new StatusItem(
    () => switches.whyOff(atHand()),
    () => {
      const document = atHand();
      return !document || isServed(document);
    },
  );
  const programs = new Programs(context);
  const server: Server = new Server(
    programs,
    status,
    switches,
    () => offers,
    () => nextEdits,
    log,
  );
  const offers = new Offers({
    shown: (item) => {
      server.notify('textDocument/didShowCompletion', { item: reference(item) });
    },
    partiallyAccepted: (item, acceptedLength) => {
      server.notify('textDocument/didPartiallyAcceptCompletion', {
        item: reference(item),
        acceptedLength,
      });
    },
  });
  const nextEdits = new NextEdits(
    server,
    (document) => !switches.whyOff(document),
    () => offers.isShown,
  );
  const focus = new Focus(
    (document, position) => {
      server.focus(document, position);
    },
    (document) => !switches.whyOff(document),
  );
  server.onRunning = () => {
    focus.now();
  };
  const reports = new Reports(() => server.program);
  running = server;
  context.subscriptions.push(
    log,
    switches,
    status,
    reports,
    focus,
    nextEdits,
    ...registerCommands({ programs, server, status, switches, offers, nextEdits, reports, log }),
    switches.onDidChange(() => {
      status.update();
      nextEdits.clear();
      if (switches.whyOff(atHand())) {
        void vscode.commands.executeCommand('editor.action.inlineSuggest.hide');
      }
    }),
    vscode.window.onDidChangeActiveTextEditor((editor) => {
      status.update();
      focus.now(editor);
    }),
    vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
      focus.moved(textEditor);
      offers.moved();
    }),
    vscode.workspace.onDidChangeTextDocument((event) => {
      offers.changed(event);
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (OF_SERVER.some((key) => event.affectsConfiguration(`codespec.${key}`))) {
        void server.restart();
      } else if (['codespec.enabled', OF_EDITOR].some((key) => event.affectsConfiguration(key))) {
        status.update();
      }
    }),
  );
  await server.restart();
  void afterStart(programs, server, status);
  return {
    get status() {
      return status.status;
    },
    onDidChangeStatus: status.onDidChange,
  };
}

export async function deactivate(): Promise<void> {
  await running?.stop();
}

async function afterStart(programs: Programs, server: Server, status: StatusItem): Promise<void> {
  if (!server.program) {
    if (status.actions.some(({ command }) => command === 'codespec.install')) {
      await offerToInstall(status);
    }
  } else if (await programs.isOutdated(server.program)) {
    const update = 'Update';
    const chosen = await vscode.window.showInformationMessage(
      'This version of the extension brings a newer codespec.',
      update,
    );
    if (chosen) await vscode.commands.executeCommand('codespec.install');
  }
}

/** What the server needs to know an item again: its command. */
function reference(item: vscode.InlineCompletionItem): object {
  const { insertText, command } = item;
  return {
    insertText: typeof insertText === 'string' ? insertText : insertText.value,
    ...(command && { command }),
  };
}
