/** The language server's process: started, watched, restarted. */

import { spawn, type ChildProcess } from 'node:child_process';
import * as os from 'node:os';
import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  State,
  type ErrorHandler,
  type Middleware,
} from 'vscode-languageclient/node';
import type { Offers } from './offers';
import { Problem, type Programs } from './program';
import { sections } from './settings';
import type { ServerStatus, StatusItem } from './status';
import type { Switches } from './switches';

const DOCUMENTS = ['file', 'untitled', 'vscode-notebook-cell'].map((scheme) => ({ scheme }));
const MAX_CRASHES = 4;
const CRASHES_COUNT_FOR_MS = 180_000;
/** A program that says nothing for so long is no language server. */
const START_TIMEOUT_MS = 60_000;

export class Server {
  private client: LanguageClient | undefined;
  private child: ChildProcess | undefined;
  /** Starts and stops run one after another. */
  private queue: Promise<void> = Promise.resolve();
  program: string | undefined;
  /** Called when the server can be talked to. */
  onRunning: () => void = () => undefined;

  constructor(
    private readonly programs: Programs,
    private readonly status: StatusItem,
    private readonly switches: Switches,
    private readonly offers: () => Offers,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  restart(): Promise<void> {
    return this.enqueue(async () => {
      await this.stopNow();
      await this.startNow();
    });
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

  focus(document: vscode.TextDocument, position?: vscode.Position): void {
    if (DOCUMENTS.some(({ scheme }) => scheme === document.uri.scheme)) {
      this.notify('textDocument/didFocus', {
        textDocument: { uri: document.uri.toString() },
        ...(position && { position: { line: position.line, character: position.character } }),
      });
    }
  }

  private enqueue(task: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(task, task);
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
      this.status.setServer({ busy: true, kind: 'Normal', message: 'starting the server' });
      this.status.setFault('');
      this.client = this.makeClient(this.program);
      this.client.onNotification('didChangeStatus', (status: ServerStatus) => {
        this.status.setServer(status);
      });
      this.client.onDidChangeState(({ newState }) => {
        void this.running(newState === State.Running);
        // Also after it was started again by itself.
        if (newState === State.Running) this.onRunning();
      });
      await this.startClient(this.client, this.program);
    } catch (error) {
      this.log.error(String(error));
      this.status.setFault(
        error instanceof Problem ? error.message : 'the server did not start: see the log',
      );
    }
  }

  private async startClient(client: LanguageClient, program: string): Promise<void> {
    const timeout = AbortSignal.timeout(START_TIMEOUT_MS);
    const kill = (): void => {
      this.child?.kill(); // which ends the wait
    };
    timeout.addEventListener('abort', kill);
    try {
      await client.start();
    } catch (error) {
      if (!timeout.aborted) throw error;
      throw new Problem(`${program} does not answer: see the log, or change codespec.path`);
    } finally {
      timeout.removeEventListener('abort', kill);
    }
  }

  private async stopNow(): Promise<void> {
    const { client, child } = this;
    this.client = this.child = undefined;
    await this.running(false);
    try {
      await client?.dispose();
    } catch (error) {
      this.log.warn(`stopping: ${String(error)}`);
      child?.kill();
    }
  }

  private async running(isRunning: boolean): Promise<void> {
    await vscode.commands.executeCommand('setContext', 'codespec.running', isRunning);
  }

  private makeClient(program: string): LanguageClient {
    return new LanguageClient(
      'codespec',
      'codespec',
      () =>
        new Promise((resolve, reject) => {
          // Not started in the workspace: what lies there must not matter.
          const child = spawn(program, ['lsp'], { cwd: os.homedir() });
          this.child = child;
          child.once('spawn', () => {
            resolve(child);
          });
          child.on('error', (error) => {
            reject(new Problem(`${program} cannot be run: ${error.message}`));
          });
        }),
      {
        documentSelector: DOCUMENTS,
        outputChannel: this.log,
        initializationOptions: sections(),
        middleware: this.middleware(),
        errorHandler: this.errorHandler(),
        initializationFailedHandler: () => false,
      },
    );
  }

  private middleware(): Middleware {
    return {
      provideInlineCompletionItems: async (document, position, context, token, next) => {
        if (this.switches.whyOff(document)) return [];
        const version = document.version;
        const asked = Promise.resolve(next(document, position, context, token));
        const found = await this.status.during(asked);
        if (!token.isCancellationRequested) {
          const items = Array.isArray(found) ? found : (found?.items ?? []);
          this.offers().arrived(items, document, version, position);
        }
        return found;
      },
    };
  }

  private errorHandler(): ErrorHandler {
    let crashes: number[] = [];
    return {
      error: () => ({ action: ErrorAction.Continue }),
      closed: () => {
        const now = Date.now();
        crashes = [...crashes.filter((at) => now - at < CRASHES_COUNT_FOR_MS), now];
        if (crashes.length <= MAX_CRASHES) {
          this.status.setServer({
            busy: true,
            kind: 'Normal',
            message: 'starting the server again',
          });
          return { action: CloseAction.Restart, handled: true };
        }
        this.status.setFault('the server ended again and again: see the log');
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }
}
