/** The command line of codespec, for what needs no server: reports and models. */

import { spawn } from 'node:child_process';
import * as os from 'node:os';
import * as vscode from 'vscode';
import { Problem } from './program';
import { environment } from './settings';

/** Runs `program ...args` to its end; both outputs, whatever the exit code. Throws: Problem where
 * it cannot be run; CancellationError. */
export async function run(
  program: string,
  args: string[],
  token?: vscode.CancellationToken,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  // Not in the workspace: what lies there must not matter.
  const env = { ...process.env, ...environment(), NO_COLOR: '1', COLUMNS: '100' };
  const child = spawn(program, args, { cwd: os.homedir(), env, stdio: ['ignore', 'pipe', 'pipe'] });
  const cancelled = token?.onCancellationRequested(() => child.kill());
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject).on('close', resolve);
    });
    if (token?.isCancellationRequested) throw new vscode.CancellationError();
    return { code, stdout, stderr };
  } catch (error) {
    if (error instanceof vscode.CancellationError) throw error;
    throw new Problem(`${program} cannot be run: ${String(error)}`);
  } finally {
    cancelled?.dispose();
  }
}

/** What a command with `--json` says. Throws: Problem with what it says instead. */
export async function ask<T>(
  program: string,
  args: string[],
  token?: vscode.CancellationToken,
): Promise<T> {
  return JSON.parse(await succeed(program, [...args, '--json'], token)) as T;
}

/** Standard output. Throws: Problem with what it says where it fails. */
export async function succeed(
  program: string,
  args: string[],
  token?: vscode.CancellationToken,
): Promise<string> {
  const { code, stdout, stderr } = await run(program, args, token);
  if (code !== 0) throw new Problem(stderr.trim() || stdout.trim() || `${program} failed`);
  return stdout;
}
