/**
 * The program `codespec`: where it is, and how to make it. Nothing from a workspace is ever run:
 * neither a setting of it, nor an environment in it, nor a folder of it on PATH.
 */

import { execFile, spawn } from 'node:child_process';
import * as fs from 'node:fs/promises';
import * as os from 'node:os';
import * as path from 'node:path';
import * as readline from 'node:readline';
import { promisify } from 'node:util';
import * as vscode from 'vscode';

const WINDOWS = process.platform === 'win32';
const MIN_PYTHON = [3, 10] as const;
const SEPARATOR = WINDOWS ? /[\\/]/ : /\//;
const MAX_LINKS = 40;

/** A problem with its cause and the next step, for people. */
export class Problem extends Error {}

export class Programs {
  private readonly storage: string;
  private readonly dist: string;

  constructor(context: vscode.ExtensionContext) {
    this.storage = context.globalStorageUri.fsPath;
    this.dist = context.asAbsolutePath('dist');
  }

  /** Absolute path of `codespec`, undefined where there is none. Throws: Problem. */
  async find(): Promise<string | undefined> {
    const named = setting('path');
    if (named) {
      if (await isFile(named)) return named;
      throw new Problem(`codespec.path names ${named}, which is not a file: change the setting`);
    }
    const made = [await this.environment(), ...(await this.environments())];
    for (const folder of made) {
      if (await isComplete(folder)) return programIn(folder);
    }
    const name = WINDOWS ? 'codespec.exe' : 'codespec';
    return (await onPath([name])) ?? (await ofTools(name));
  }

  /** Whether an environment was made from an earlier version of this extension. */
  async isOutdated(program: string): Promise<boolean> {
    return (
      program.startsWith(this.storage + path.sep) &&
      program !== programIn(await this.environment()) &&
      (await isFile(path.join(this.dist, 'source.tar.gz')))
    );
  }

  /** Unpacks the bundled source and sets it up; earlier environments go. Throws: Problem. */
  async create(report: (line: string) => void, token: vscode.CancellationToken): Promise<string> {
    const source = path.join(this.dist, 'source.tar.gz');
    if (!(await isFile(source))) {
      throw new Problem('this build of the extension has no source in it: set codespec.path');
    }
    const python = await findPython();
    const folder = await this.environment();
    await fs.mkdir(folder, { recursive: true });
    report('unpacking');
    await run(python, ['-m', 'tarfile', '-e', source, folder], folder, report, token);
    await run(python, [path.join('.ci', 'bootstrap.py')], folder, report, token);
    for (const other of await this.environments()) {
      if (other !== folder) await fs.rm(other, { recursive: true, force: true });
    }
    return programIn(folder);
  }

  /** Named by the source it is made from. */
  private async environment(): Promise<string> {
    const digest = await fs
      .readFile(path.join(this.dist, 'source.digest'), 'utf8')
      .catch(() => 'unpacked');
    return path.join(this.storage, `environment-${digest}`);
  }

  private async environments(): Promise<string[]> {
    const names = await fs.readdir(this.storage).catch(() => []);
    const found = names.filter((name) => name.startsWith('environment-'));
    return found.map((name) => path.join(this.storage, name));
  }
}

async function findPython(): Promise<string> {
  const minors = [14, 13, 12, 11, 10].map((minor) => `python3.${minor.toString()}`);
  const names = [...minors, 'python3', 'python'].map((name) => (WINDOWS ? `${name}.exe` : name));
  const named = setting('python');
  const candidates = named ? [named] : await allOnPath(names);
  const wanted = MIN_PYTHON.join(', ');
  const test = `import sys, venv, ensurepip; sys.exit(sys.version_info < (${wanted}))`;
  for (const candidate of candidates) {
    try {
      await promisify(execFile)(candidate, ['-c', test], { cwd: os.homedir() });
      return candidate;
    } catch {
      // Too old, or without what makes environments.
    }
  }
  throw new Problem(
    named
      ? `codespec.python names ${named}, which is no Python ${MIN_PYTHON.join('.')} or newer with venv`
      : `no Python ${MIN_PYTHON.join('.')} or newer with venv on PATH: install one (Debian: apt install python3-venv), or name one in codespec.python`,
  );
}

async function run(
  program: string,
  args: string[],
  cwd: string,
  report: (line: string) => void,
  token: vscode.CancellationToken,
): Promise<void> {
  const last: string[] = [];
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const onLine = (line: string): void => {
    last.push(line);
    if (last.length > 5) last.shift();
    report(line);
  };
  readline.createInterface(child.stdout).on('line', onLine);
  readline.createInterface(child.stderr).on('line', onLine);
  const cancel = token.onCancellationRequested(() => child.kill());
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject).on('close', resolve);
    });
    if (token.isCancellationRequested) throw new vscode.CancellationError();
    if (code !== 0) throw new Problem(last.join('\n') || `${program} ended with an error`);
  } finally {
    cancel.dispose();
  }
}

function programIn(environment: string): string {
  const name = WINDOWS ? path.join('Scripts', 'codespec.exe') : path.join('bin', 'codespec');
  return path.join(environment, '.venv', name);
}

async function isComplete(environment: string): Promise<boolean> {
  // The stamp is written last.
  const stamp = path.join(environment, '.venv', '.codespec.json');
  return (await isFile(stamp)) && (await isFile(programIn(environment)));
}

async function onPath(names: string[]): Promise<string | undefined> {
  return (await allOnPath(names))[0];
}

/** Where uv and pipx put programs: an editor that a desktop starts may not have it on its PATH. */
async function ofTools(name: string): Promise<string | undefined> {
  const named = ['UV_TOOL_BIN_DIR', 'PIPX_BIN_DIR', 'XDG_BIN_HOME'].map((key) => process.env[key]);
  for (const folder of [...named, path.join(os.homedir(), '.local', 'bin')]) {
    if (folder === undefined || !path.isAbsolute(folder)) continue;
    const file = path.join(folder, name);
    if ((await isFile(file)) && !(await leadsThroughWorkspace(file))) return file;
  }
  return undefined;
}

async function allOnPath(names: string[]): Promise<string[]> {
  const found: string[] = [];
  const folders: string[] = [];
  for (const folder of (process.env['PATH'] ?? '').split(path.delimiter)) {
    if (path.isAbsolute(folder) && !(await leadsThroughWorkspace(folder))) folders.push(folder);
  }
  for (const name of names) {
    for (const folder of folders) {
      const file = path.join(folder, name);
      if ((await isFile(file)) && !(await leadsThroughWorkspace(file))) found.push(file);
    }
  }
  return found;
}

/** Whether what the system comes by when it follows a path, links included, is of a workspace. */
async function leadsThroughWorkspace(file: string): Promise<boolean> {
  const roots = new Set<string>();
  for (const { uri } of vscode.workspace.workspaceFolders ?? []) {
    roots.add(await realPath(uri.fsPath));
  }
  let at = path.parse(file).root;
  const rest = partsOf(file);
  let nLinks = 0;
  while (rest.length > 0) {
    at = path.join(at, rest.shift() ?? '');
    if (roots.has(await realPath(at))) return true;
    const target = await fs.readlink(at).catch(() => undefined);
    if (target === undefined) continue;
    if (++nLinks > MAX_LINKS) return true;
    at = path.isAbsolute(target) ? path.parse(target).root : path.dirname(at);
    rest.unshift(...partsOf(target));
  }
  return false;
}

function partsOf(file: string): string[] {
  return file
    .slice(path.parse(file).root.length)
    .split(SEPARATOR)
    .filter((part) => part !== '');
}

function realPath(file: string): Promise<string> {
  return fs.realpath(file).catch(() => file);
}

async function isFile(file: string): Promise<boolean> {
  return fs.stat(file).then(
    (stat) => stat.isFile(),
    () => false,
  );
}

function setting(key: 'path' | 'python'): string {
  const value = vscode.workspace.getConfiguration('codespec').get<string | null>(key) ?? '';
  return value.trim().replace(/^~(?=[/\\])/, os.homedir());
}
