/** The language server's process: started, watched, restarted. */

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import * as os from 'node:os';
import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  State,
  type Middleware,
  type StaticFeature,
} from 'vscode-languageclient/node';
import type { NextEdit, NextEdits } from './nextEdits';
import type { Offers } from './offers';
import { Problem, type Programs } from './program';
import { sections } from './settings';
import type { ServerStatus, StatusItem } from './status';
import type { Switches } from './switches';

const DOCUMENTS = ['file', 'untitled', 'vscode-notebook-cell'].map((scheme) => ({ scheme }));

/** Whether the server is told of it. */
export function isServed({ uri }: vscode.TextDocument): boolean {
  return DOCUMENTS.some(({ scheme }) => scheme === uri.scheme);
}

const MAX_CRASHES = 4;
const CRASHES_COUNT_FOR_MS = 180_000;
/** A program that says nothing for so long is no language server. */
const START_TIMEOUT_MS = 60_000;
/** Kept of what a program says on standard error, for the message when it ends. */
const MAX_LAST_WORDS = 300;
/** What it has said is read within this time after its end. */
const LAST_WORDS_MS = 100;

/** Says that edits of all documents are shown here. */
const SHOWS_EDITS: StaticFeature = {
  fillClientCapabilities: (capabilities) => {
    const known: object = (capabilities.experimental as object | undefined) ?? {};
    capabilities.experimental = { ...known, inlineEdits: true };
  },
  initialize: () => undefined,
  getState: () => ({ kind: 'static' }),
  clear: () => undefined,
};

type Suggested = vscode.InlineCompletionItem[] | vscode.InlineCompletionList | null | undefined;

export class Server {
  private client: LanguageClient | undefined;
  private child: ChildProcessWithoutNullStreams | undefined;
  /** Starts and stops run one after another. */
  private queue: Promise<void> = Promise.resolve();
  private nQueued = 0;
  private isStarting = false;
  private crashes: number[] = [];
  program: string | undefined;
  /** Called when the server can be talked to. */
  onRunning: () => void = () => undefined;

  constructor(
    private readonly programs: Programs,
    private readonly status: StatusItem,
    private readonly switches: Switches,
    private readonly offers: () => Offers,
    private readonly nextEdits: () => NextEdits,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  restart(): Promise<void> {
    this.crashes = [];
    return this.startAgain();
  }

  stop(): Promise<void> {
    return this.enqueue(() => this.stopNow());
  }

  /** Nothing while no server runs. */
  notify(method: string, params: object): void {
    if (!this.client?.isRunning()) return;
    this.client.sendNotification(method, params).catch((error: unknown) => {
      this.log.warn(`${method}: ${String(error)}`);
    });
  }

  /** No edits while no server runs, or where it cannot answer. */
  async request(method: string, params: object): Promise<{ readonly edits: readonly NextEdit[] }> {
    try {
      if (this.client?.isRunning()) return await this.client.sendRequest(method, params);
    } catch (error) {
      this.log.warn(`${method}: ${String(error)}`);
    }
    return { edits: [] };
  }

  focus(document: vscode.TextDocument, position?: vscode.Position): void {
    if (isServed(document)) {
      this.notify('textDocument/didFocus', {
        textDocument: { uri: document.uri.toString() },
        ...(position && { position: { line: position.line, character: position.character } }),
      });
    }
  }

  private startAgain(): Promise<void> {
    return this.enqueue(async () => {
      await this.stopNow();
      await this.startNow();
    });
  }

  private enqueue(task: () => Promise<void>): Promise<void> {
    // A start under way is of no use any more, and may take a minute with a wrong program.
    if (this.isStarting) this.child?.kill('SIGKILL');
    this.nQueued += 1;
    const next = (): Promise<void> => {
      this.nQueued -= 1;
      return task();
    };
    this.queue = this.queue.then(next, next);
    return this.queue;
  }

  private async startNow(): Promise<void> {
    try {
      this.program = undefined;
      this.program = await this.programs.find();
      if (!this.program) {
        this.status.setFault('codespec is not installed', true);
        return;
      }
      if (this.nQueued) return;
      this.status.setServer({ busy: true, kind: 'Normal', message: 'starting the server' });
      this.status.setFault('');
      this.isStarting = true;
      await this.startClient(this.program);
    } catch (error) {
      if (this.nQueued) return; // it was given up
      this.log.error(String(error));
      this.status.setFault(
        error instanceof Problem ? error.message : 'the server did not start: see the log',
      );
    } finally {
      this.isStarting = false;
    }
  }

  private async startClient(program: string): Promise<void> {
    // Not started in the workspace: what lies there must not matter.
    const child = spawn(program, ['lsp'], { cwd: os.homedir() });
    this.log.info(`${program} lsp`);
    const end = endOf(child, program, this.log);
    const client = this.makeClient(child);
    this.child = child;
    this.client = client;
    void end.then((how) => {
      this.ended(client, how);
    });
    const timeout = AbortSignal.timeout(START_TIMEOUT_MS);
    const kill = (): void => {
      child.kill('SIGKILL'); // which ends the wait
    };
    timeout.addEventListener('abort', kill);
    try {
      const failed = end.then((how) => Promise.reject(how));
      await Promise.race([new Promise((resolve) => child.once('spawn', resolve)), failed]);
      await Promise.race([client.start(), failed]);
    } catch (error) {
      kill();
      const how = await end;
      if (timeout.aborted) {
        throw new Problem(`${program} does not answer: see the log, or change codespec.path`);
      }
      // Its own words say more than that nobody listens any more.
      throw child.signalCode ? error : how;
    } finally {
      timeout.removeEventListener('abort', kill);
    }
  }

  /** A server that ended by itself is started again, unless it does so again and again. */
  private ended(client: LanguageClient, how: Problem): void {
    if (this.client !== client || this.isStarting) return;
    this.log.warn(how.message);
    const now = Date.now();
    this.crashes = [...this.crashes.filter((at) => now - at < CRASHES_COUNT_FOR_MS), now];
    if (this.crashes.length > MAX_CRASHES) {
      this.status.setFault('the server ended again and again: see the log');
    } else {
      this.status.setServer({ busy: true, kind: 'Normal', message: 'starting the server again' });
      void this.startAgain();
    }
  }

  private async stopNow(): Promise<void> {
    const { client, child } = this;
    this.client = this.child = undefined;
    await this.running(false);
    try {
      await client?.dispose();
    } catch (error) {
      child?.kill('SIGKILL'); // it was asked nicely
      this.log.warn(`stopping: ${String(error)}`); // fails where the window is gone
    }
  }

  private async running(isRunning: boolean): Promise<void> {
    try {
      await vscode.commands.executeCommand('setContext', 'codespec.running', isRunning);
    } catch {
      // The window is gone.
    }
  }

  private makeClient(child: ChildProcessWithoutNullStreams): LanguageClient {
    const client = new LanguageClient(
      'codespec',
      'codespec',
      () => Promise.resolve({ reader: child.stdout, writer: child.stdin }),
      {
        documentSelector: DOCUMENTS,
        outputChannel: this.log,
        initializationOptions: sections(),
        middleware: this.middleware(),
        errorHandler: {
          error: () => ({ action: ErrorAction.Continue }),
          // Started again by us: the program may be another one, or gone.
          closed: () => {
            child.kill('SIGKILL');
            return {
              action: CloseAction.DoNotRestart,
              handled: true,
              message: 'the server does not listen any more',
            };
          },
        },
        initializationFailedHandler: () => false,
      },
    );
    client.registerFeature(SHOWS_EDITS);
    client.onNotification('didChangeStatus', (status: ServerStatus) => {
      if (this.client === client) this.status.setServer(status);
    });
    client.onDidChangeState(({ newState }) => {
      if (this.client !== client) return;
      void this.running(newState === State.Running);
      // Also after it was started again by itself.
      if (newState === State.Running) this.onRunning();
    });
    return client;
  }

  private middleware(): Middleware {
    return {
      workspace: {
        // What the server asks for beats what it was started with, and `codespec.server` alone is
        // not all that is set.
        configuration: (params) => params.items.map(() => sections()),
      },
      provideInlineCompletionItems: (document, position, context, token, next) => {
        if (this.switches.whyOff(document) || this.nextEdits().showsGhost) return [];
        const version = document.version;
        const suggest = async (): Promise<Suggested> => {
          const asked = Promise.resolve(next(document, position, context, token));
          const found = await this.status.during(asked);
          if (!token.isCancellationRequested) {
            const items = Array.isArray(found) ? found : (found?.items ?? []);
            this.offers().arrived(items, document, version, position);
          }
          return found;
        };
        return this.nextEdits().suggesting(suggest());
      },
    };
  }
}

/** Resolves when the program has ended, or could not be started, with how and what it said last. */
function endOf(
  child: ChildProcessWithoutNullStreams,
  program: string,
  log: vscode.LogOutputChannel,
): Promise<Problem> {
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log.append(text);
    said = (said + text).slice(-MAX_LAST_WORDS);
  });
  return new Promise((resolve) => {
    child.on('error', (error) => {
      resolve(new Problem(`${program} cannot be run: ${error.message}`));
    });
    const ended = (): void => {
      const how = child.signalCode ?? `status ${String(child.exitCode)}`;
      const words = said.trim().split('\n').at(-1);
      const cause = words ? ` (${words})` : '';
      resolve(
        new Problem(`${program} ended with ${how}${cause}: see the log, or change codespec.path`),
      );
    };
    // Children of the program may keep its outputs open for as long as they like.
    child.on('exit', () => setTimeout(ended, LAST_WORDS_MS)).on('close', ended);
  });
}
