/** Settings of the editor that are settings of codespec, by section; only what is set, so that
 * codespec's own file holds for the rest. */

import * as vscode from 'vscode';

export type Sections = Record<string, unknown>;

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** As the language server takes them. */
export function sections(): Sections {
  const settings = vscode.workspace.getConfiguration('codespec');
  const others = settings.get<unknown>('server');
  // Null is what is not set. A section that is no table is left to the server, which says so.
  const found: Sections = Object.fromEntries(
    Object.entries(isTable(others) ? others : {}).filter(([, values]) => values !== null),
  );
  const set = (section: string, key: string, value: unknown): void => {
    const known = found[section] ?? {};
    if (isTable(known)) found[section] = { ...known, [key]: value };
  };
  const model = settings.get<string>('model', '');
  const draftModel = settings.get<string>('draftModel', 'auto');
  const maxTokens = settings.get<number | null>('maxTokens', null);
  if (model) set('model', 'target', model);
  if (draftModel !== 'auto') set('model', 'draft', draftModel);
  if (maxTokens !== null) set('completion', 'max_tokens', maxTokens);
  // A repository brings its own settings: they may restrict, never more.
  const index = settings.inspect<boolean>('indexWorkspace');
  if ([index?.globalValue, index?.workspaceValue, index?.workspaceFolderValue].includes(false)) {
    set('index', 'enabled', false);
  }
  return found;
}

/** As the command line takes them, which so speaks of what runs here. */
export function environment(): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [section, values] of Object.entries(sections())) {
    for (const [key, value] of Object.entries(isTable(values) ? values : {})) {
      if (value === null || value === undefined) continue;
      found[`CODESPEC_${section}_${key}`.toUpperCase()] =
        typeof value === 'string' ? value : JSON.stringify(value);
    }
  }
  return found;
}
