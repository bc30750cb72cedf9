import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { TestNamespace } from '../namespace.ts';
import { patient } from '../patience.ts';

// Debian's Chromium without a window, driven by the DevTools protocol over a pipe: messages of JSON, each ended by a zero byte.

export interface Look {
  /** CSS pixels. */
  readonly width: number;
  readonly height: number;
  readonly scheme: 'light' | 'dark';
}

export interface Browser {
  /** Opens a page and waits until it is loaded. */
  open(url: string, look: Look): Promise<void>;
  /** What an expression comes to in the page. */
  evaluate<T>(expression: string): Promise<T>;
  /** What the page is as a PNG picture: its upper part, as high as the look. */
  picture(): Promise<Buffer>;
  /** What was written to the console, and what was not loaded. */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

const ANSWER_MS = patient(60_000);

/** Starts a browser inside a namespace. */
export async function startBrowser(namespace: TestNamespace): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'nodeplane-browser-'));
  // Root has no sandbox; nothing but our own page is opened, in a namespace that leads nowhere.
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'];
  const quiet = [
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-extensions',
    '--hide-scrollbars',
  ];
  const args = [
    'netns',
    'exec',
    namespace.name,
    'chromium',
    ...flags,
    ...quiet,
    `--user-data-dir=${profile}`,
    '--remote-debugging-pipe',
    'about:blank',
  ];
  // A group of its own: helpers of the browser live on for a moment, and write to the profile.
  const child = spawn('ip', args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true });
  const wire = new Wire(child);
  const { targetInfos } = await wire.ask<{ targetInfos: { targetId: string; type: string }[] }>('Target.getTargets');
  const { targetId } = targetInfos.find(({ type }) => type === 'page')!;
  const { sessionId } = await wire.ask<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true });
  const ask = <T>(method: string, params: object = {}) => wire.ask<T>(method, params, sessionId);
  const complaints: string[] = [];
  wire.heard = ({ method, params }) => {
    if (method === 'Log.entryAdded' || method === 'Runtime.consoleAPICalled' || method === 'Runtime.exceptionThrown') {
      complaints.push(JSON.stringify(params));
    }
  };
  for (const domain of ['Page', 'Runtime', 'Log']) await ask(`${domain}.enable`);
  return {
    complaints,
    async open(url, { width, height, scheme }) {
      await ask('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 500 });
      await ask('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
      const loaded = wire.event('Page.loadEventFired');
      await ask('Page.navigate', { url });
      await loaded;
    },
    async evaluate<T>(expression: string) {
      const { result, exceptionDetails } = await ask<{ result: { value: T }; exceptionDetails?: object }>(
        'Runtime.evaluate',
        {
          expression,
          returnByValue: true,
        },
      );
      if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
      return result.value;
    },
    async picture() {
      const { data } = await ask<{ data: string }>('Page.captureScreenshot', { format: 'png' });
      return Buffer.from(data, 'base64');
    },
    async close() {
      child.stdio[3]?.destroy();
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      killGroup(child.pid!);
      rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // Nobody is left.
  }
}

/** One conversation with the browser. */
class Wire {
  heard: (message: Message) => void = () => {};
  readonly #out: Writable;
  readonly #waiting = new Map<number, (message: Message) => void>();
  readonly #events = new Map<string, () => void>();
  #lastId = 0;
  #rest = '';

  constructor({ stdio }: ChildProcess) {
    this.#out = stdio[3] as Writable;
    this.#out.on('error', () => {});
    (stdio[4] as Readable).setEncoding('utf8').on('data', (text: string) => {
      const messages = `${this.#rest}${text}`.split('\0');
      this.#rest = messages.pop()!;
      for (const one of messages) this.#take(JSON.parse(one) as Message);
    });
  }

  async ask<T>(method: string, params: object = {}, sessionId?: string): Promise<T> {
    const id = ++this.#lastId;
    const answer = within<Message>(method, (resolve) => this.#waiting.set(id, resolve));
    this.#out.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    const { result, error } = await answer;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result as T;
  }

  event(name: string): Promise<void> {
    return within<void>(name, (resolve) => this.#events.set(name, resolve));
  }

  #take(message: Message): void {
    const { id, method } = message;
    if (id !== undefined) {
      this.#waiting.get(id)?.(message);
      this.#waiting.delete(id);
      return;
    }
    this.#events.get(method ?? '')?.();
    this.heard(message);
  }
}

function within<T>(what: string, begin: (resolve: (value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`The browser did not answer: ${what}`)), ANSWER_MS);
    begin((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}
