/** The command that chooses a model: the list, downloads and the choice are `codespec models`'. */

import * as vscode from 'vscode';
import { ask, succeed } from './cli';

interface Known {
  readonly name: string;
  readonly bytes: number;
  readonly origin: string;
  readonly exists: boolean;
  readonly default: 'target' | 'draft' | '';
}

interface Recommended {
  readonly recommended: string | null;
  readonly models: {
    readonly name: string;
    readonly file_gb: number;
    readonly licence: string;
    readonly fits: boolean;
  }[];
}

/** `get`: its name, once it is there; undefined where the user changed their mind. */
type Row = vscode.QuickPickItem & { readonly get: () => Promise<string | undefined> };

/** Whether another model was chosen. Throws: Problem. */
export async function chooseModel(program: string): Promise<boolean> {
  const { models } = await ask<{ models: Known[] }>(program, ['models', 'list']);
  const rows: Row[] = models
    .filter((model) => model.exists && model.default !== 'draft')
    .map((model) => ({
      label: model.name,
      description: `${size(model.bytes)}, ${model.origin}`,
      ...(model.default && { detail: 'in use' }),
      get: () => Promise.resolve(model.name),
    }));
  rows.push(
    { label: 'A GGUF file …', get: () => addFile(program) },
    { label: 'Download a model …', get: () => download(program) },
  );
  const chosen = await vscode.window.showQuickPick(rows, {
    title: 'codespec: model',
    placeHolder: 'The model to complete with, in all editors',
    matchOnDescription: true,
  });
  const name = await chosen?.get();
  if (name === undefined) return false;
  const origin = models.find((model) => model.name === name)?.origin;
  await succeed(program, ['models', 'default', origin === 'bundled' ? 'bundled' : name]);
  // It would win over what was chosen now.
  const settings = vscode.workspace.getConfiguration('codespec');
  if (settings.get<string>('model')) {
    await settings.update('model', undefined, vscode.ConfigurationTarget.Global);
  }
  return true;
}

async function addFile(program: string): Promise<string | undefined> {
  const picked = await vscode.window.showOpenDialog({
    title: 'A model with fill-in-the-middle',
    filters: { GGUF: ['gguf'] },
  });
  if (!picked?.[0]) return undefined;
  return (await ask<{ name: string }>(program, ['models', 'add', picked[0].fsPath])).name;
}

async function download(program: string): Promise<string | undefined> {
  const found = await ask<Recommended>(program, ['models', 'recommend']);
  const rows = found.models.map((model) => ({
    label: model.name,
    description: `${model.file_gb.toFixed(1)} GB, ${model.licence}`,
    detail: model.name === found.recommended ? 'suits this machine' : '',
    fits: model.fits,
  }));
  const chosen = await vscode.window.showQuickPick(
    rows.filter(({ fits }) => fits),
    { title: 'codespec: download a model', placeHolder: 'Those that fit into free memory' },
  );
  if (!chosen) return undefined;
  const { name } = await vscode.window.withProgress(
    {
      location: vscode.ProgressLocation.Notification,
      title: `codespec: downloading ${chosen.label}`,
      cancellable: true,
    },
    (_, token) => ask<{ name: string }>(program, ['models', 'add', chosen.label], token),
  );
  return name;
}

function size(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(0)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
