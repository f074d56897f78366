/** What the command palette and the status item offer. */

import * as vscode from 'vscode';
import { chooseModel } from './models';
import type { NextEdits } from './nextEdits';
import type { Offers } from './offers';
import { Problem, type Programs } from './program';
import { place, type Reports } from './reports';
import type { Server } from './server';
import type { StatusItem } from './status';
import type { Switches } from './switches';

export interface Parts {
  readonly programs: Programs;
  readonly server: Server;
  readonly status: StatusItem;
  readonly switches: Switches;
  readonly offers: Offers;
  readonly nextEdits: NextEdits;
  readonly reports: Reports;
  readonly log: vscode.LogOutputChannel;
}

export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { server, switches, offers, nextEdits, reports, log } = parts;
  const inEditor = (action: (editor: vscode.TextEditor) => unknown) => async (): Promise<void> => {
    const editor = vscode.window.activeTextEditor;
    if (editor) await action(editor);
    else await vscode.window.showInformationMessage('codespec: open a file first.');
  };
  const editorCommand = (name: string) => () =>
    vscode.commands.executeCommand(`editor.action.inlineSuggest.${name}`);
  const commands: Record<string, (argument?: unknown) => unknown> = {
    trigger: editorCommand('trigger'),
    next: editorCommand('showNext'),
    previous: editorCommand('showPrevious'),
    acceptWord: () => offers.accept('editor.action.inlineSuggest.acceptNextWord'),
    acceptLine: () => offers.accept('editor.action.inlineSuggest.acceptNextLine'),
    nextEdit: () => nextEdits.go(),
    nextEditMade: (id?: unknown) => nextEdits.made(id),
    dismissNextEdit: () => {
      nextEdits.dismiss();
    },
    listNextEdits: () => nextEdits.list(),
    snooze: (minutes?: unknown) => snooze(switches, minutes),
    toggleDocument: inEditor(({ document }) => {
      switches.toggleDocument(document);
    }),
    toggleLanguage: inEditor(({ document }) => switches.toggleLanguage(document)),
    toggleWorkspace: () => switches.toggleWorkspace(),
    enable: () => switches.enable(vscode.window.activeTextEditor?.document),
    explain: inEditor(({ document, selection }) => explain(reports, document, selection.active)),
    doctor: () => reports.show('doctor', ['doctor', ...subject()]),
    chooseModel: () =>
      withProgram(server, async (program) => {
        if (await chooseModel(program)) await server.restart();
      }),
    showLog: () => {
      log.show();
    },
    restart: () => server.restart(),
    install: () => install(parts),
    openPathSetting: () =>
      vscode.commands.executeCommand('workbench.action.openSettings', 'codespec.path'),
    welcome: () =>
      vscode.commands.executeCommand('workbench.action.openWalkthrough', 'codespec.codespec#start'),
    menu: () => showMenu(parts),
  };
  return Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(`codespec.${name}`, (argument?: unknown) =>
      reporting(() => run(argument), log),
    ),
  );
}

/** What goes wrong in a command is said, with its cause. */
async function reporting(run: () => unknown, log: vscode.LogOutputChannel): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (error instanceof vscode.CancellationError) return;
    const words = error instanceof Problem ? error.message : String(error);
    log.error(words);
    const said = `codespec: ${withoutLinks(words)}`;
    const chosen = await vscode.window.showErrorMessage(said, 'Show Log');
    if (chosen) log.show();
  }
}

/** Notifications make links of Markdown's, also such as run a command of the editor, and what went
 * wrong may be said in words of a model file. */
function withoutLinks(words: string): string {
  return words.replaceAll('](', '] (');
}

/** What the doctor looks at: the file at hand, or the workspace. */
function subject(): string[] {
  const uri = vscode.window.activeTextEditor?.document.uri;
  if (uri?.scheme === 'file') return [uri.fsPath];
  if (uri && isCellOfFile(uri)) return [vscode.Uri.file(uri.path).fsPath];
  const folder = vscode.workspace.workspaceFolders?.[0];
  return folder ? [folder.uri.fsPath] : [];
}

function isCellOfFile({ scheme, path }: vscode.Uri): boolean {
  return scheme === 'vscode-notebook-cell' && path.startsWith('/'); // else it is not saved yet
}

/** Says once that there is no codespec yet, and offers to make it. */
export async function offerToInstall(status: StatusItem): Promise<void> {
  const actions = status.actions;
  const chosen = await vscode.window.showInformationMessage(
    'codespec is not installed yet. Create a Python environment for it? It is built for this machine, which takes some minutes, once.',
    ...actions.map(({ title }) => title),
  );
  const action = actions.find(({ title }) => title === chosen);
  if (action) await vscode.commands.executeCommand(action.command);
}

async function showMenu({ status, switches }: Parts): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  const off = switches.whyOff(document);
  const { state, reason } = status.status;
  const rows: (vscode.QuickPickItem & { command?: string })[] = [
    { label: `${state}: ${reason}`, kind: vscode.QuickPickItemKind.Separator },
    ...status.actions.map(({ title, command }) => ({ label: title, command })),
    { label: '', kind: vscode.QuickPickItemKind.Separator },
  ];
  if (document && !off) {
    rows.push(
      { label: 'Disable in this file', command: 'codespec.toggleDocument' },
      { label: `Disable for ${document.languageId}`, command: 'codespec.toggleLanguage' },
    );
  }
  if (!off) {
    rows.push(
      { label: 'Disable in this workspace', command: 'codespec.toggleWorkspace' },
      { label: 'Snooze', command: 'codespec.snooze' },
    );
  }
  rows.push(
    { label: 'Explain suggestion here', command: 'codespec.explain' },
    { label: 'Choose model', command: 'codespec.chooseModel' },
    { label: 'Run doctor', command: 'codespec.doctor' },
    { label: 'Show log', command: 'codespec.showLog' },
    { label: 'Restart', command: 'codespec.restart' },
  );
  const known = new Set<string>();
  const once = rows.filter(({ command }) => {
    if (command === undefined) return true;
    return !known.has(command) && known.add(command);
  });
  const chosen = await vscode.window.showQuickPick(once, { title: 'codespec' });
  if (chosen?.command) await vscode.commands.executeCommand(chosen.command);
}

/** `minutes`: of who calls the command with them; else the user is asked. */
async function snooze(switches: Switches, minutes: unknown): Promise<void> {
  if (typeof minutes === 'number') {
    switches.snooze(minutes);
    return;
  }
  const choices = [5, 15, 30, 60].map((n) => ({ label: `${n.toString()} minutes`, minutes: n }));
  const chosen = await vscode.window.showQuickPick([...choices, { label: 'End', minutes: 0 }], {
    title: 'codespec: no suggestions for',
  });
  if (chosen) switches.snooze(chosen.minutes);
}

async function explain(
  reports: Reports,
  document: vscode.TextDocument,
  position: vscode.Position,
): Promise<void> {
  if (document.uri.scheme !== 'file') {
    const why = isCellOfFile(document.uri)
      ? 'cells of notebooks cannot be explained; the doctor says which rules hold for the notebook'
      : document.isUntitled
        ? 'save the file first'
        : 'this is not a file of this machine';
    await vscode.window.showInformationMessage(`codespec: ${why}.`);
    return;
  }
  // The command line reads the file.
  if (document.isDirty && !(await document.save())) return;
  await reports.show('explain', ['explain', place(document, position)]);
}

/** The program, once there is one: otherwise the menu says what to do. */
async function withProgram(
  server: Server,
  action: (program: string) => Promise<unknown>,
): Promise<void> {
  if (server.program) await action(server.program);
  else await vscode.commands.executeCommand('codespec.menu');
}

async function install({ programs, server, log }: Parts): Promise<void> {
  await vscode.window.withProgress(
    {
      location: vscode.ProgressLocation.Notification,
      title: 'codespec: creating the Python environment',
      cancellable: true,
    },
    (progress, token) =>
      programs.create((line) => {
        log.info(line);
        progress.report({ message: line });
      }, token),
  );
  await server.restart();
}
