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
  /** What to send once, in place of them. */
  readonly text?: string;
}

/** `connected` (TCP), `answered` (UDP), or the error a program would see: ECONNREFUSED, EHOSTUNREACH; ETIMEDOUT for silence. */
export type AttemptResult = string;

/** A TCP connection may lose its first packet, which the kernel repeats after one second. */
const PATIENCE_MS = 2500;

/**
 * Runs in the namespace: `node -e`. TCP is closed at once and sends nothing. Where no port of the source is free for an attempt that asks
 * for it, the kernel may still have one to share. Datagrams without a text are repeated, because a first large one may be lost only to
 * teach the sender what fits.
 */
const SCRIPT = `
const { attempts, patience, isHeld } = JSON.parse(process.argv[1]);
const results = attempts.map(() => 'ETIMEDOUT');
let open = attempts.length;
const end = () => { process.stdout.write(JSON.stringify(results)); process.exit(0); };
setTimeout(end, patience);
if (isHeld) process.stdin.on('close', () => process.exit()).resume();
attempts.forEach(({ protocol, source, ip, port, bytes, text }, index) => {
  let timer;
  let isDone = false;
  const done = (result) => {
    clearInterval(timer);
    if (isDone) return;
    isDone = true;
    results[index] = result;
    if (--open === 0) end();
  };
  const failed = (error) => done(error.code || String(error));
  if (protocol === 'TCP') {
    const connect = (localAddress) => {
      const socket = require('net').connect({ host: ip, port, localAddress });
      socket.once('connect', () => {
        done(socket.localAddress === source ? 'connected' : 'EADDRINUSE');
        socket.destroy();
      });
      socket.once('error', (error) => error.code === 'EADDRINUSE' && localAddress ? connect() : failed(error));
    };
    return connect(source);
  }
  const socket = require('dgram').createSocket(ip.includes(':') ? 'udp6' : 'udp4');
  socket.once('error', failed);
  socket.once('message', () => done('answered'));
  const send = () => socket.send(text ?? Buffer.alloc(bytes), (error) => error && text !== undefined && failed(error));
  socket.bind({ address: source }, () => socket.connect(port, ip, (error) => {
    if (error) return failed(error);
    send();
    if (text === undefined) timer = setInterval(send, patience / 5);
  }));
});
`;

/** The arguments of `node` to make attempts, whose results are JSON on its stdout. @param isHeld ends them with whoever holds its stdin */
export function attemptArguments(attempts: readonly Attempt[], patienceMs: number, isHeld = false): readonly string[] {
  const told = attempts.map((one) => ({ bytes: 0, ...one, source: formatIp(one.source), ip: formatIp(one.ip) }));
  return ['-e', SCRIPT, JSON.stringify({ attempts: told, patience: patienceMs, isHeld })];
}

/**
 * Makes real attempts, all at once. Sends packets: only when somebody asked for it.
 *
 * @param netns of the pod that has the source addresses; undefined: they are this node's own
 * @returns a result for each attempt
 * @throws ERR_EXEC when they cannot be made
 */
export function tryAttempts(netns: string | undefined, attempts: readonly Attempt[]): readonly AttemptResult[] {
  if (attempts.length === 0) return [];
  const args = attemptArguments(attempts, PATIENCE_MS);
  // A child begins in the namespace of the thread that starts it.
  const run = () => spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 10 * PATIENCE_MS });
  const { stdout, stderr, error } = netns === undefined ? run() : inNetns(netns, run);
  try {
    return JSON.parse(stdout) as AttemptResult[];
  } catch {
    const why = error?.message ?? stderr.trim().split('\n').at(-1);
    throw new NodeplaneError(
      'ERR_EXEC',
      `Cannot connect from ${formatIp(attempts[0]!.source)}: the attempt did not run: ${why}`,
    );
  }
}
