import { spawn } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText, formatIp, IP_PROTOCOLS, type IpAddress, NodeplaneError } from '../../core/index.ts';
import { attemptArguments, otherNamespaces } from '../../explain/index.ts';
import { withNetlink } from '../../netlink/index.ts';
import { listLinks } from '../../netlink/route/index.ts';
import { NETLINK_ROUTE } from '../../netlink/uapi/index.ts';
import { inNetns } from '../../sys/index.ts';
import type { TracedTuple } from './trace-table.ts';

/** What an attempt came to: `connected`, or the error as the program in the pod would see it. */
export interface ProbeOutcome {
  readonly source: string;
  readonly result: string;
}

/** What to send. */
export interface Probe {
  readonly tuple: TracedTuple & { readonly source: IpAddress };
  /** Of UDP. */
  readonly payload: string;
  readonly timeoutMs: number;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
}

/** Letters of what the attempt says when it fails to run. */
const MOST_COMPLAINT = 300;

/**
 * Makes a real connection from the pod that has the source address: TCP, closed at once, or one UDP datagram.
 *
 * @throws ERR_NETNS when no namespace of this node has the address; ERR_EXEC when it cannot be tried
 */
export async function probe({ tuple, payload, timeoutMs, signal }: Probe): Promise<ProbeOutcome> {
  const { source, destination, port, protocol } = tuple;
  const path = namespaceOf(source);
  const attempt = {
    source,
    protocol: protocol === IP_PROTOCOLS.TCP ? 'TCP' : 'UDP',
    ip: destination,
    port,
    text: payload,
  } as const;
  const args = attemptArguments([attempt], timeoutMs, true);
  // A child begins in the namespace of the thread that starts it.
  const start = () => {
    const child = spawn(process.execPath, args, { stdio: 'pipe' });
    return { child };
  };
  const { child } = path === undefined ? start() : inNetns(path, start);
  signal.addEventListener('abort', () => child.kill('SIGKILL'), { once: true });
  return new Promise((resolve, reject) => {
    let result = '';
    let complaint = '';
    child.stderr.on('data', (chunk: Buffer) => {
      complaint = (complaint + chunk.toString('utf8')).slice(-MOST_COMPLAINT);
    });
    child.stdout.on('data', (chunk: Buffer) => {
      result += chunk.toString('utf8');
    });
    child.on('error', (cause) =>
      reject(new NodeplaneError('ERR_EXEC', `Cannot connect from the pod: ${errorText(cause)}`, { cause })),
    );
    child.on('close', (status, by) => {
      const how = `the attempt was ended, ${by ?? `with status ${status}`}${complaint === '' ? '' : `: ${complaint.trim()}`}`;
      resolve({ source: formatIp(source), result: result === '' ? how : (JSON.parse(result) as string[])[0]! });
    });
  });
}

/** What an attempt comes to, or that it has come to nothing in so many milliseconds. Rejects as the attempt does. */
export function outcomeWithin(attempt: Promise<ProbeOutcome>, ms: number): Promise<ProbeOutcome> {
  const over = new AbortController();
  const late = sleep(
    ms,
    { source: 'the pod', result: 'neither connected nor refused by then' },
    { signal: over.signal },
  );
  // A timer that is left would keep the command from its end.
  return Promise.race([attempt, late]).finally(() => over.abort());
}

/** Undefined: the address is the node's own. */
function namespaceOf(address: IpAddress): string | undefined {
  if (hasAddress(address)) return undefined;
  const text = formatIp(address);
  const found = withNetlink(NETLINK_ROUTE, (netlink) => {
    // Other networks of this machine may use the same addresses.
    const attached = new Set(listLinks(netlink).map(({ peerNetnsId }) => peerNetnsId));
    return otherNamespaces(netlink).find(
      ({ id, addresses }) => id !== undefined && attached.has(id) && addresses.some(({ ip }) => ip === text),
    );
  });
  if (found) return found.path;
  throw new NodeplaneError(
    'ERR_NETNS',
    `Cannot connect from ${text}: none of the network namespaces that are seen here and attached to this node has this address. Name a pod of this node, and run this where the node's /run/netns is seen`,
    { facts: { address: text } },
  );
}

function hasAddress(address: IpAddress): boolean {
  const text = formatIp(address);
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some((one) => one.address === text));
}
