/** Settings of the editor that are settings of codespec, by section; only what is set, so that
 * codespec's own file holds for the rest. */

import * as vscode from 'vscode';

export type Sections = Record<string, unknown>;

/** Settings that ask for less: by their names here, the server's names, and their values from the
 * one that asks for nothing on. Of numbers, the larger asks for less. */
const RESTRAINT: Record<string, { section?: 'edits'; key: string; values?: readonly unknown[] }> = {
  trigger: { key: 'trigger', values: ['auto', 'subtle', 'manual'] },
  lines: { key: 'lines', values: ['auto', 'single'] },
  eagerness: { key: 'eagerness', values: ['high', 'medium', 'low'] },
  inComments: { key: 'in_comments', values: [true, false] },
  inStrings: { key: 'in_strings', values: [true, false] },
  idleMs: { key: 'idle_ms' },
  'edits.enabled': { section: 'edits', key: 'enabled', values: [true, false] },
  'edits.eagerness': { section: 'edits', key: 'eagerness', values: ['high', 'medium', 'low'] },
  'edits.where': { section: 'edits', key: 'where', values: ['workspace', 'file', 'line'] },
};

/** Names of the settings above. */
export const RESTRAINING = Object.keys(RESTRAINT);

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
  const editsModel = settings.get<string>('edits.model', '');
  const maxTokens = settings.get<number | null>('maxTokens', null);
  if (model) set('model', 'target', model);
  if (draftModel !== 'auto') set('model', 'draft', draftModel);
  if (editsModel) set('edits', 'model', editsModel);
  if (maxTokens !== null) set('completion', 'max_tokens', maxTokens);
  const less: Sections = {};
  for (const [name, { section, key, values }] of Object.entries(RESTRAINT)) {
    const said = settings.inspect<unknown>(name);
    const mine = said?.globalValue ?? null;
    if (mine !== null) set(section ?? 'completion', key, mine);
    // A repository brings its own settings: they may restrict, never more. The server hears both.
    const rank = (value: unknown): number =>
      values ? values.indexOf(value) : typeof value === 'number' ? value : -1;
    const asked = [said?.workspaceValue, said?.workspaceFolderValue]
      .filter((value) => rank(value) > 0)
      .sort((a, b) => rank(b) - rank(a));
    if (asked.length === 0) continue;
    if (section) less[key] = asked[0];
    else set('restraint', key, asked[0]);
  }
  if (Object.keys(less).length > 0) set('restraint', 'edits', less);
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
    if (section === 'restraint') continue; // the command line has no such section
    for (const [key, value] of Object.entries(isTable(values) ? values : {})) {
      if (value === null || value === undefined) continue;
      found[`CODESPEC_${section}_${key}`.toUpperCase()] =
        typeof value === 'string' ? value : JSON.stringify(value);
    }
  }
  return found;
}
