import { isIPv6 } from 'node:net';
import type { IpFamily } from '../../src/core/index.ts';
import type { Protocol } from '../../src/kube/index.ts';
import { own, type TestNamespace } from './namespace.ts';
import type {
  ConnectOptions,
  FlowOptions,
  FlowReport,
  HttpResponse,
  LoadOptions,
  LoadReport,
  Outcome,
  Target,
} from './traffic/protocol.ts';
import { startWorker, type WorkerClient } from './traffic/worker-client.ts';

/** Anything in the lab that can send and serve: a pod, an outside client, the processes of a node itself. */
export interface Host {
  readonly name: string;
  readonly namespace: TestNamespace;
  /** Its addresses without prefix lengths, IPv4 first. */
  readonly ips: readonly string[];
  /** Its address of one family. @default IPv4 */
  ip(family?: IpFamily): string;
  /** Listens on all its addresses (or on `ip`) and answers with its name and the client it saw; see serveTcp, serveUdp, serveSctp. */
  serve(server: { readonly port: number; readonly protocol?: Protocol; readonly ip?: string }): Promise<void>;
  /** Stops listening and resets the server's connections, as a pod that ends does. */
  stopServing(server: { readonly port: number; readonly protocol?: Protocol }): Promise<void>;
  /** One connection (or UDP exchange): who answered and whom they saw, or how it failed. Never rejects for the network. */
  connect(target: Target, options?: ConnectOptions): Promise<Outcome>;
  /** `count` connections, at most `concurrency` (@default 16) at once. */
  connectMany(
    target: Target,
    count: number,
    options?: ConnectOptions & { readonly concurrency?: number },
  ): Promise<Outcome[]>;
  /** Opens a connection that stays, by TCP or SCTP. */
  hold(target: Target, options?: ConnectOptions): Promise<HeldConnection>;
  /** Begins new connections at a steady rate until stopped. */
  startLoad(target: Target, options?: LoadOptions): Promise<Load>;
  /** Sends UDP datagrams from one port at a steady rate until stopped: an established flow. */
  startFlow(target: Omit<Target, 'protocol'>, options?: FlowOptions): Promise<Flow>;
  /** Fetches a URL; rejects when there is no response within `timeoutMs` (@default 2000). */
  httpGet(url: string, options?: { readonly timeoutMs?: number }): Promise<HttpResponse>;
  /** Ends its traffic and removes its namespace; what it is attached to notices as it would a power cut. */
  remove(): Promise<void>;
}

/** A connection that stays open. */
export interface HeldConnection {
  /** How its beginning went. */
  readonly outcome: Outcome;
  /** Sends a line of at least `bytes` (@default 0) and waits for it to come back: `answered` as long as the connection works. */
  echo(options?: { readonly timeoutMs?: number; readonly bytes?: number }): Promise<Outcome>;
  close(): Promise<void>;
}

/** A steady flow of new connections. */
export interface Load {
  report(): Promise<LoadReport>;
  /** Begins nothing new, waits for what is under way, and reports. */
  stop(): Promise<LoadReport>;
}

/** A steady flow of datagrams between two ports. */
export interface Flow {
  report(): Promise<FlowReport>;
  /** Sends nothing more, waits for the answers under way, and reports. */
  stop(): Promise<FlowReport>;
}

/** What to make a host of. */
export interface HostOptions {
  readonly name: string;
  readonly namespace: TestNamespace;
  readonly ips: readonly string[];
}

/** A host in a namespace that has its addresses already. Its thread starts with its first traffic. */
export function createHost({ name, namespace, ips }: HostOptions): Host {
  let worker: WorkerClient | undefined;
  const thread = (): WorkerClient => {
    if (!worker) {
      const started = startWorker({ netns: namespace.path, name });
      own(() => void started.stop());
      worker = started;
    }
    return worker;
  };
  return {
    name,
    namespace,
    ips: [...ips].sort((a, b) => Number(isIPv6(a)) - Number(isIPv6(b))),
    ip(family = 'IPv4') {
      const found = ips.find((ip) => isIPv6(ip) === (family === 'IPv6'));
      if (found === undefined) throw new Error(`Lab host "${name}" has no ${family} address`);
      return found;
    },
    serve: (server) => thread().call('serve', server),
    stopServing: (server) => thread().call('stopServing', server),
    connect: (target, options = {}) => thread().call('connect', { target, options }),
    connectMany: (target, count, { concurrency = 16, ...options } = {}) =>
      thread().call('connectMany', { target, count, concurrency, options }),
    async hold(target, options = {}) {
      const { id, outcome } = await thread().call('hold', { target, options });
      return {
        outcome,
        echo: ({ timeoutMs = 2000, bytes = 0 } = {}) => thread().call('echo', { id, timeoutMs, bytes }),
        close: () => thread().call('release', { id }),
      };
    },
    async startLoad(target, options = {}) {
      const id = await thread().call('startLoad', { target, options });
      return { report: () => thread().call('loadReport', { id }), stop: () => thread().call('stopLoad', { id }) };
    },
    async startFlow(target, options = {}) {
      const id = await thread().call('startFlow', { target, options });
      return { report: () => thread().call('flowReport', { id }), stop: () => thread().call('stopFlow', { id }) };
    },
    httpGet: (url, { timeoutMs = 2000 } = {}) => thread().call('httpGet', { url, timeoutMs }),
    async remove() {
      await worker?.stop();
      namespace.remove();
    },
  };
}
