/** The language server's process: started, watched, restarted. */

import * as os from 'node:os';
import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type ErrorHandler,
  type Middleware,
} from 'vscode-languageclient/node';
import type { Offers } from './offers';
import { Problem, type Programs } from './program';
import type { ServerStatus, StatusItem } from './status';
import type { Switches } from './switches';

const DOCUMENTS = ['file', 'untitled', 'vscode-notebook-cell'].map((scheme) => ({ scheme }));
const MAX_CRASHES = 4;
const CRASHES_COUNT_FOR_MS = 180_000;

export class Server {
  private client: LanguageClient | undefined;
  /** Starts and stops run one after another. */
  private queue: Promise<void> = Promise.resolve();
  program: string | undefined;

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

  focus(document: vscode.TextDocument | undefined): void {
    if (document && DOCUMENTS.some(({ scheme }) => scheme === document.uri.scheme)) {
      this.notify('textDocument/didFocus', {
        textDocument: { uri: document.uri.toString() },
      });
    }
  }

  private enqueue(task: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(task, task);
    return this.queue;
  }

  private async startNow(): Promise<void> {
    try {
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
      await this.client.start();
      await this.running(true);
      this.focus(vscode.window.activeTextEditor?.document);
    } catch (error) {
      this.log.error(String(error));
      this.status.setFault(
        error instanceof Problem ? error.message : 'the server did not start: see the log',
      );
    }
  }

  private async stopNow(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await this.running(false);
    try {
      await client?.dispose();
    } catch (error) {
      this.log.warn(`stopping: ${String(error)}`);
    }
  }

  private async running(isRunning: boolean): Promise<void> {
    await vscode.commands.executeCommand('setContext', 'codespec.running', isRunning);
  }

  private makeClient(program: string): LanguageClient {
    return new LanguageClient(
      'codespec',
      'codespec',
      // Not started in the workspace: what lies there must not matter.
      { command: program, args: ['lsp'], options: { cwd: os.homedir() } },
      {
        documentSelector: DOCUMENTS,
        outputChannel: this.log,
        initializationOptions: options(),
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
        if (crashes.length <= MAX_CRASHES) return { action: CloseAction.Restart, handled: true };
        this.status.setFault('the server ended again and again: see the log');
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }
}

/** Settings that the server takes, by section; only what is set, so that its own file holds. */
function options(): Record<string, Record<string, unknown>> {
  const settings = vscode.workspace.getConfiguration('codespec');
  const found: Record<string, Record<string, unknown>> = {};
  const set = (section: string, key: string, value: unknown): void => {
    found[section] = { ...found[section], [key]: value };
  };
  const others = settings.get<Record<string, Record<string, unknown>>>('server', {});
  for (const [section, values] of Object.entries(others)) {
    for (const [key, value] of Object.entries(values)) set(section, key, value);
  }
  const model = settings.get<string>('model', '');
  const draftModel = settings.get<string>('draftModel', 'auto');
  const maxTokens = settings.get<number | null>('maxTokens', null);
  if (model) set('model', 'target', model);
  if (draftModel !== 'auto') set('model', 'draft', draftModel);
  if (maxTokens !== null) set('completion', 'max_tokens', maxTokens);
  if (!settings.get<boolean>('indexWorkspace', true)) set('index', 'enabled', false);
  return found;
}
