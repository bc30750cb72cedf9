import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Host } from './host.ts';
import { patient } from './patience.ts';
import { builtProgram } from './programs.ts';

/** How to run the agent. */
export interface AgentOptions {
  /** The directory of manifests it reads. @default none: the flags say where the API server is */
  readonly manifests?: string;
  /** `kube-proxy` is the same under kube-proxy's own command line. @default nodeplane */
  readonly program?: 'nodeplane' | 'kube-proxy';
  /** The folder of another build than the one that lies beside this. @default this one's */
  readonly build?: string;
  /** Further flags: `['--proxy-mode', 'iptables']`. @default none */
  readonly flags?: readonly string[];
  /** Lets it live on when this process ends. @default false */
  readonly detached?: boolean;
  /**
   * What to wait for: `live` is what the kubelet asks for, before anything was synced; `started`: nothing, because another agent
   * has the ports. @default synced
   */
  readonly until?: 'started' | 'live' | 'synced';
  /** The name of its log file without the suffix. @default one for all agents of the node */
  readonly log?: string;
  /** The beginning of a command line that runs it where it belongs. @default `ip netns exec <the node>` */
  readonly enter?: readonly string[];
}

/** A running `nodeplane agent`. */
export interface Agent {
  readonly pid: number;
  /** Its exit status, once it has ended. */
  readonly ended: Promise<number>;
  /** Where its output goes. */
  readonly logFile: string;
  /** The log so far, as parsed JSON lines; lines that are not JSON appear as `{ msg }`. */
  logs(): Record<string, unknown>[];
  /** Its metrics in Prometheus' text form. */
  metrics(): Promise<string>;
  /** SIGTERM, then waits for its end. Resolves to the exit status. */
  stop(): Promise<number>;
  /** SIGKILL, then waits for its end. */
  kill(): Promise<void>;
}

const HEALTH_URL = 'http://127.0.0.1:10256/livez';
const METRICS_URL = 'http://127.0.0.1:10249/metrics';
const FIRST_SYNC = /^kubeproxy_sync_proxy_rules_last_timestamp_seconds(?:\{[^}]*ip_family="IPv4"[^}]*\})? ([\d.e+]+)$/m;
const START_TIMEOUT_MS = patient(40_000);
const STOP_TIMEOUT_MS = patient(20_000);

/**
 * Starts `nodeplane agent` (or `kube-proxy`) inside a node's namespace and waits until it is healthy and has synced once.
 *
 * @param folder the lab's folder: log file and iptables lock go there, so that labs do not wait for each other
 * @throws with the end of its log when it ends early or is not ready in time
 */
export async function startAgent(node: Host, folder: string, options: AgentOptions): Promise<Agent> {
  const logFile = join(folder, `${options.log ?? `agent-${node.name}`}.log`);
  const log = openSync(logFile, 'a');
  const { manifests, program = 'nodeplane', build, flags = [] } = options;
  const executable = build === undefined ? builtProgram(program) : join(build, program);
  const args = [
    ...(program === 'nodeplane' ? ['agent'] : []),
    ...(manifests === undefined ? [] : ['--manifests', manifests]),
    ...['--hostname-override', node.name, '--logging-format', 'json', ...flags],
  ];
  const [enter, ...rest] = options.enter ?? ['ip', 'netns', 'exec', node.namespace.name];
  const child = spawn(enter!, [...rest, executable, ...args], {
    stdio: ['ignore', log, log],
    env: { ...process.env, XTABLES_LOCKFILE: join(folder, 'xtables.lock') },
    detached: options.detached ?? false,
  });
  closeSync(log);
  const ended = new Promise<number>((resolve) => {
    child.on('exit', (code, signal) => resolve(code ?? (signal === 'SIGKILL' ? 137 : 143)));
    child.on('error', () => resolve(127));
  });
  const end = (signal: NodeJS.Signals) => endProcess(child, ended, signal, logFile);
  try {
    const { until = 'synced' } = options;
    if (until !== 'started') await ready(node, ended, logFile, until);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  if (options.detached) child.unref();
  return {
    pid: child.pid!,
    ended,
    logFile,
    logs: () => readFileSync(logFile, 'utf8').split('\n').filter(Boolean).map(parseLogLine),
    metrics: async () => (await node.httpGet(METRICS_URL, { timeoutMs: 10_000 })).body,
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
  };
}

async function ready(node: Host, ended: Promise<number>, logFile: string, until: 'live' | 'synced'): Promise<void> {
  let status: number | undefined;
  void ended.then((code) => {
    status = code;
  });
  const begun = Date.now();
  const deadline = begun + START_TIMEOUT_MS;
  let last = '';
  while (Date.now() < deadline) {
    if (status !== undefined) throw new Error(`The agent ended with status ${status} at its start:\n${tail(logFile)}`);
    try {
      const health = await node.httpGet(HEALTH_URL);
      if (until === 'live' && health.status === 200) return;
      const synced = FIRST_SYNC.exec((await node.httpGet(METRICS_URL)).body);
      if (health.status === 200 && Number(synced?.[1]) > 0) return;
      last = `${HEALTH_URL} answered ${health.status}, last sync at ${synced?.[1] ?? 'no time'}`;
    } catch (error) {
      last = (error as Error).message;
    }
    // To ask and to answer takes the VM's processors a fifth of a second, which the start then waits for.
    await delay(Math.max(20, (Date.now() - begun) / 8));
  }
  throw new Error(`The agent was not ready within ${START_TIMEOUT_MS} ms (${last}):\n${tail(logFile)}`);
}

async function endProcess(
  child: ChildProcess,
  ended: Promise<number>,
  signal: NodeJS.Signals,
  logFile: string,
): Promise<number> {
  child.kill(signal);
  let late = '';
  const timer = setTimeout(() => {
    late = threadsOf(child.pid!);
    child.kill('SIGKILL');
  }, STOP_TIMEOUT_MS);
  const status = await ended;
  clearTimeout(timer);
  if (late) {
    const message = `The agent did not end within ${STOP_TIMEOUT_MS} ms of ${signal}`;
    throw new Error(`${message}; its threads:\n${late}\n${tail(logFile)}`);
  }
  return status;
}

/** The threads of a process, and where in the kernel each waits. */
function threadsOf(pid: number): string {
  const folder = `/proc/${pid}/task`;
  try {
    return readdirSync(folder)
      .map((id) =>
        ['comm', 'wchan', 'syscall'].map((name) => readFileSync(`${folder}/${id}/${name}`, 'utf8').trim()).join(' '),
      )
      .join('\n');
  } catch (error) {
    return `they ended just now: ${(error as Error).message}`;
  }
}

function tail(logFile: string): string {
  return readFileSync(logFile, 'utf8').split('\n').slice(-40).join('\n');
}

function parseLogLine(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return { msg: line };
  }
}
