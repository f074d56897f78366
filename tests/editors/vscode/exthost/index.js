// Runs in VS Code's extension host beside the extension: what it contributes, says and does, seen
// through the editor's own API. What came of it is written to the file `result` of the workspace.
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const vscode = require('vscode');

const CODE = 'def first(items):\n    return len(items)\n\n\ndef second(items):\n    return len(';
const TIMEOUT_MS = 60_000;

const run = (command, ...args) => vscode.commands.executeCommand(command, ...args);

async function until(condition, what) {
  const giveUpAt = Date.now() + TIMEOUT_MS;
  while (!(await condition())) {
    if (Date.now() > giveUpAt) throw new Error(`waited in vain: ${what()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function test() {
  const extension = vscode.extensions.getExtension('codespec.codespec');
  assert.ok(extension);
  const api = await extension.activate();
  const states = [api.status.state];
  api.onDidChangeStatus((status) => states.push(status.state));
  const becomes = (state) =>
    until(
      () => api.status.state === state,
      () => `${state}; it is ${api.status.state}, ${api.status.reason}`,
    );
  await becomes('ready');
  for (const state of states) assert.ok(['thinking', 'ready'].includes(state), states.join());

  const known = await vscode.commands.getCommands(true);
  for (const { command } of extension.packageJSON.contributes.commands) {
    assert.ok(known.includes(command), command);
  }

  // What a workspace says about programs and models is not even read.
  for (const key of ['path', 'python', 'model', 'draftModel', 'server']) {
    const target = vscode.ConfigurationTarget.Workspace;
    const update = vscode.workspace.getConfiguration('codespec').update(key, 'x', target);
    await assert.rejects(async () => update, key);
  }

  // A suggestion, in part and as a whole, in a document without a file.
  const document = await vscode.workspace.openTextDocument({ language: 'python', content: CODE });
  const editor = await vscode.window.showTextDocument(document);
  const end = document.positionAt(CODE.length);
  editor.selection = new vscode.Selection(end, end);
  const accept = async (command) => {
    const before = document.getText();
    await until(
      async () => {
        await run('codespec.trigger');
        await run(command);
        return document.getText() !== before;
      },
      () => `${command} to insert; ${api.status.reason}`,
    );
    assert.ok(document.getText().startsWith(before), document.getText());
    return document.getText().slice(before.length);
  };
  const word = await accept('codespec.acceptWord');
  assert.ok(word.length > 1 && !word.includes('\n'), word);
  await accept('editor.action.inlineSuggest.commit');

  // Switches.
  await run('codespec.toggleDocument');
  await becomes('off');
  assert.match(api.status.reason, /this file/);
  const silent = document.getText();
  await run('codespec.trigger');
  await run('editor.action.inlineSuggest.commit');
  assert.equal(document.getText(), silent);
  await run('codespec.enable');
  await becomes('ready');
  await run('codespec.toggleWorkspace');
  await becomes('off');
  assert.match(api.status.reason, /workspace/);
  await run('codespec.enable');
  await becomes('ready');

  await run('codespec.snooze', 30);
  await becomes('off');
  assert.equal(api.status.reason, 'snoozed for 30 more minutes');
  await run('codespec.enable');
  await becomes('ready');

  await run('codespec.restart');
  await becomes('ready');
  assert.ok(states.includes('thinking'));

  // Reports, of the file at hand.
  const [folder] = vscode.workspace.workspaceFolders;
  const file = vscode.Uri.joinPath(folder.uri, 'main.py');
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(file));
  await run('codespec.explain');
  const report = vscode.workspace.textDocuments.find((d) => d.uri.scheme === 'codespec-report');
  assert.ok(report);
  assert.match(report.getText(), /prompt/i);
}

exports.run = async () => {
  const result = await test().then(
    () => 'passed',
    (error) => error.stack,
  );
  const partial = path.join(vscode.workspace.workspaceFolders[0].uri.fsPath, 'partial');
  fs.writeFileSync(partial, result);
  fs.renameSync(partial, path.join(path.dirname(partial), 'result'));
};
