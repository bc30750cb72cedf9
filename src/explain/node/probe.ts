import { spawnSync } from 'node:child_process';
import { formatIp, type IpAddress, NodeplaneError } from '../../core/index.ts';
import { inNetns } from '../../sys/index.ts';

/** One attempt to reach somebody. */
export interface Attempt {
  readonly source: IpAddress;
  readonly protocol: 'TCP' | 'UDP';
  readonly ip: IpAddress;
  readonly port: number;
  /** Bytes of a UDP payload. @default 0 */
  readonly bytes?: number;
}

/** `connected` (TCP), `answered` (UDP), or the error a program would see: ECONNREFUSED, EHOSTUNREACH; ETIMEDOUT for silence. */
export type AttemptResult = string;

/** A TCP connection may lose its first packet, which the kernel repeats after one second. */
const PATIENCE_MS = 2500;

/**
 * Runs in the namespace: `node -e`. TCP is closed at once and sends nothing. Datagrams are repeated, because a first large one may
 * be lost only to teach the sender what fits.
 */
const SCRIPT = `
const { attempts, patience } = JSON.parse(process.argv[1]);
const results = attempts.map(() => 'ETIMEDOUT');
let open = attempts.length;
const end = () => { process.stdout.write(JSON.stringify(results)); process.exit(0); };
setTimeout(end, patience);
attempts.forEach(({ protocol, source, ip, port, bytes }, index) => {
  const done = (result) => { results[index] = result; if (--open === 0) end(); };
  const failed = (error) => done(error.code || String(error));
  if (protocol === 'TCP') {
    const socket = require('net').connect({ host: ip, port, localAddress: source });
    socket.once('connect', () => { socket.destroy(); done('connected'); });
    socket.once('error', failed);
    return;
  }
  const socket = require('dgram').createSocket(ip.includes(':') ? 'udp6' : 'udp4');
  socket.once('error', (error) => { clearInterval(timer); failed(error); });
  socket.once('message', () => { clearInterval(timer); done('answered'); });
  const send = () => socket.send(Buffer.alloc(bytes), () => {});
  let timer;
  socket.bind({ address: source }, () => socket.connect(port, ip, (error) => {
    if (error) return failed(error);
    send();
    timer = setInterval(send, patience / 5);
  }));
});
`;

/**
 * Makes real attempts, all at once. Sends packets: only when somebody asked for it.
 *
 * @param netns of the pod that has the source addresses; undefined: they are this node's own
 * @returns a result for each attempt
 * @throws ERR_EXEC when they cannot be made
 */
export function tryAttempts(netns: string | undefined, attempts: readonly Attempt[]): readonly AttemptResult[] {
  const told = attempts.map(({ protocol, source, ip, port, bytes = 0 }) => {
    return { protocol, source: formatIp(source), ip: formatIp(ip), port, bytes };
  });
  const args = ['-e', SCRIPT, JSON.stringify({ attempts: told, patience: PATIENCE_MS })];
  // A child begins in the namespace of the thread that starts it.
  const run = () => spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 10 * PATIENCE_MS });
  const { stdout, stderr, error } = netns === undefined ? run() : inNetns(netns, run);
  try {
    return JSON.parse(stdout) as AttemptResult[];
  } catch {
    const why = error?.message ?? stderr.trim().split('\n').at(-1);
    throw new NodeplaneError('ERR_EXEC', `Cannot connect from ${told[0]?.source}: the attempt did not run: ${why}`);
  }
}
