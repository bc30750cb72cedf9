// What a lab host's thread can be asked to do, and what it answers: the messages between host.ts and netns-worker.ts.
// Everything here is plain data, because it crosses a thread boundary.
import type { Protocol } from '../../../src/kube/index.ts';

/** Where traffic goes. */
export interface Target {
  /** An address, never a name: nothing is resolved in the lab. */
  readonly ip: string;
  readonly port: number;
  /** @default TCP */
  readonly protocol?: Protocol;
}

/** How one connection or one UDP exchange is made. */
export interface ConnectOptions {
  /** How long without an answer counts as `timeout`, on a quiet machine (patience.ts). @default 2000 */
  readonly timeoutMs?: number;
  /**
   * How long the server of a connection that was made in time may take to answer: for who asks about the network, and not
   * whether the thread that serves had a processor. @default timeoutMs
   */
  readonly answerMs?: number;
  /** Source address, for a host that has several. @default chosen by the kernel's routing */
  readonly sourceIp?: string;
  /** Source port, to make two exchanges look like one flow. @default an unused one */
  readonly sourcePort?: number;
  /** Bytes of a UDP datagram; it comes back with the answer. @default as few as it takes */
  readonly bytes?: number;
}

/** What a server saw of the one who asked, and who it is. */
export interface Seen {
  /** Name of the lab host that answered. */
  readonly by: string;
  /** The client's address and port as they arrived, after every translation on the way. */
  readonly source: string;
  readonly sourcePort: number;
}

/** How one connection or exchange ended. `ms` runs from the start of the connection. */
export type Outcome =
  | ({ readonly kind: 'answered'; readonly ms: number } & Seen)
  /** A RST, an ABORT or an ICMP port unreachable came back: a REJECT, or nobody listening. */
  | { readonly kind: 'refused'; readonly ms: number; readonly errno: string }
  /** No route here or on the way: ICMP host or network unreachable, or the own routing table. */
  | { readonly kind: 'unreachable'; readonly ms: number; readonly errno: string }
  /** The connection was made and then broken before the answer. */
  | { readonly kind: 'broken'; readonly ms: number; readonly errno: string }
  /** Nothing came back: the packets were dropped. `errno` is there when the kernel said so itself (EPERM, ETIMEDOUT). */
  | { readonly kind: 'timeout'; readonly ms: number; readonly errno?: string };

/** What a server of one load answered. Times are milliseconds since the epoch. */
export interface ServerReport {
  readonly answers: number;
  /** When the last request that it answered was begun: later requests went elsewhere. */
  readonly lastStartedAt: number;
  readonly lastAnsweredAt: number;
}

/** The state of a load: every finished request is either an answer or a failure. */
export interface LoadReport {
  readonly started: number;
  readonly answered: number;
  readonly servers: Readonly<Record<string, ServerReport>>;
  readonly failures: readonly { readonly startedAt: number; readonly outcome: Outcome }[];
}

export interface LoadOptions extends ConnectOptions {
  /** New connections (or exchanges) begun per second. @default 100 */
  readonly perSecond?: number;
}

export interface FlowOptions {
  /** Datagrams sent per second. @default 100 */
  readonly perSecond?: number;
}

/** The state of a flow. Lost is what was sent and not answered; before `stop`, that may also be under way. */
export interface FlowReport {
  readonly sent: number;
  readonly answered: number;
  /** The longest time between an answer and the one before it. */
  readonly longestSilenceMs: number;
}

export interface HttpResponse {
  readonly status: number;
  readonly body: string;
}

/** The commands by name: input and output. Failures of the network are outcomes; a misuse (port taken) rejects. */
export interface Commands {
  serve(input: { readonly port: number; readonly protocol?: Protocol; readonly ip?: string }): Promise<void>;
  /** Stops listening and breaks the connections of the server, as a pod that ends does. */
  stopServing(input: { readonly port: number; readonly protocol?: Protocol }): Promise<void>;
  connect(input: { readonly target: Target; readonly options: ConnectOptions }): Promise<Outcome>;
  connectMany(input: {
    readonly target: Target;
    readonly count: number;
    readonly concurrency: number;
    readonly options: ConnectOptions;
  }): Promise<Outcome[]>;
  hold(input: {
    readonly target: Target;
    readonly options: ConnectOptions;
  }): Promise<{ readonly id: number; readonly outcome: Outcome }>;
  echo(input: { readonly id: number; readonly timeoutMs: number; readonly bytes: number }): Promise<Outcome>;
  release(input: { readonly id: number }): Promise<void>;
  startLoad(input: { readonly target: Target; readonly options: LoadOptions }): Promise<number>;
  loadReport(input: { readonly id: number }): Promise<LoadReport>;
  stopLoad(input: { readonly id: number }): Promise<LoadReport>;
  startFlow(input: { readonly target: Target; readonly options: FlowOptions }): Promise<number>;
  flowReport(input: { readonly id: number }): Promise<FlowReport>;
  stopFlow(input: { readonly id: number }): Promise<FlowReport>;
  httpGet(input: { readonly url: string; readonly timeoutMs: number }): Promise<HttpResponse>;
}

export type CommandName = keyof Commands;

export interface Request {
  readonly id: number;
  readonly command: CommandName;
  readonly input: unknown;
}

export type Reply =
  | { readonly id: number; readonly ok: true; readonly output: unknown }
  | { readonly id: number; readonly ok: false; readonly message: string };
