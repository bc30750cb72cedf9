// The thread of one lab host: it enters the host's network namespace for good and makes traffic there on request.
//
// setns(2) moves the calling thread alone, and a worker makes its sockets on its own thread: node:net, node:dgram and
// node:http then simply work inside, next to threads of the same process in other namespaces. Name resolution would not
// (it runs in the shared thread pool), so the lab uses addresses only.
import type { Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { enterNetns } from '../../src/sys/index.ts';
import { type RunningFlow, runFlow } from './traffic/flow.ts';
import { httpGet } from './traffic/http-get.ts';
import { type RunningLoad, runLoad } from './traffic/load.ts';
import type { Commands, ConnectOptions, Outcome, Reply, Request, Target } from './traffic/protocol.ts';
import { connectStream, echoStream, openStream } from './traffic/stream-client.ts';
import { type RunningServer, serveSctp, serveTcp } from './traffic/stream-server.ts';
import { exchangeUdp, serveUdp } from './traffic/udp.ts';

/** What the thread is started with. */
export interface WorkerInput {
  /** Path of the network namespace. */
  readonly netns: string;
  /** The name its servers answer with. */
  readonly name: string;
}

const { netns, name } = workerData as WorkerInput;
enterNetns(netns);

const servers = new Map<string, RunningServer>();
const held = new Map<number, { readonly socket: Socket; readonly outcome: Outcome }>();
const loads = new Map<number, RunningLoad>();
const flows = new Map<number, RunningFlow>();
let lastId = 0;

const SERVE = { TCP: serveTcp, UDP: serveUdp, SCTP: serveSctp };

const request = (target: Target, options: ConnectOptions): Promise<Outcome> =>
  target.protocol === 'UDP' ? exchangeUdp(target, options) : connectStream(target, options);

const commands: Commands = {
  async serve({ port, protocol = 'TCP', ip = '::' }) {
    servers.set(`${protocol} ${port}`, await SERVE[protocol](name, port, ip));
  },
  async stopServing({ port, protocol = 'TCP' }) {
    await found(servers, `${protocol} ${port}`).stop();
    servers.delete(`${protocol} ${port}`);
  },
  connect: ({ target, options }) => request(target, options),
  async connectMany({ target, count, concurrency, options }) {
    const outcomes: Outcome[] = [];
    let begun = 0;
    const lane = async () => {
      while (begun++ < count) outcomes.push(await request(target, options));
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, count) }, lane));
    return outcomes;
  },
  async hold({ target, options }) {
    const id = ++lastId;
    const { socket, outcome } = await openStream(target, options);
    held.set(id, { socket, outcome });
    return { id, outcome };
  },
  echo({ id, ...options }) {
    const { socket, outcome } = found(held, id);
    return echoStream(socket, outcome, options);
  },
  async release({ id }) {
    found(held, id).socket.destroy();
    held.delete(id);
  },
  async startLoad({ target, options }) {
    const id = ++lastId;
    loads.set(id, runLoad(target, options, request));
    return id;
  },
  loadReport: async ({ id }) => found(loads, id).report(),
  async stopLoad({ id }) {
    const report = await found(loads, id).stop();
    loads.delete(id);
    return report;
  },
  async startFlow({ target, options }) {
    const id = ++lastId;
    flows.set(id, await runFlow(target, options));
    return id;
  },
  flowReport: async ({ id }) => found(flows, id).report(),
  async stopFlow({ id }) {
    const report = await found(flows, id).stop();
    flows.delete(id);
    return report;
  },
  httpGet: ({ url, timeoutMs }) => httpGet(url, timeoutMs),
};

function found<K, V>(map: ReadonlyMap<K, V>, key: K): V {
  const value = map.get(key);
  if (value === undefined) throw new Error(`Lab host "${name}" knows no "${String(key)}"`);
  return value;
}

parentPort?.on('message', async ({ id, command, input }: Request) => {
  const reply = (message: Reply) => parentPort?.postMessage(message);
  try {
    // The host's side pairs each name with its input type.
    const run = commands[command] as (input: unknown) => Promise<unknown>;
    reply({ id, ok: true, output: await run(input) });
  } catch (error) {
    reply({ id, ok: false, message: `${name}: ${command}: ${error instanceof Error ? error.message : String(error)}` });
  }
});
