import { connect, isIPv6, type Socket } from 'node:net';
import { patient } from '../patience.ts';
import { answered, elapsed, failure, timedOut } from './outcome.ts';
import type { ConnectOptions, Outcome, Target } from './protocol.ts';
import { sctpSocket } from './sctp-socket.ts';

const QUESTION = 'who\n';

/** Connects by TCP or SCTP, asks who is there, and closes. */
export async function connectStream(target: Target, options: ConnectOptions): Promise<Outcome> {
  const { outcome, socket } = await openStream(target, options);
  socket.destroy();
  return outcome;
}

/** Connects, asks who is there, and leaves the connection open (destroyed unless answered). */
export async function openStream(
  target: Target,
  options: ConnectOptions,
): Promise<{ readonly outcome: Outcome; readonly socket: Socket }> {
  const startedAt = performance.now();
  const socket = connect({
    host: target.ip,
    port: target.port,
    noDelay: true,
    ...(target.protocol === 'SCTP'
      ? { fd: sctpSocket(options.sourceIp ?? (isIPv6(target.ip) ? '::' : '0.0.0.0'), options.sourcePort ?? 0) }
      : {
          ...(options.sourceIp === undefined ? {} : { localAddress: options.sourceIp }),
          ...(options.sourcePort === undefined ? {} : { localPort: options.sourcePort }),
        }),
  });
  // Errors between two questions are told by the next one.
  socket.on('error', () => {});
  socket.setEncoding('utf8');
  const outcome = await converse(
    socket,
    QUESTION,
    { timeoutMs: options.timeoutMs ?? 2000, answerMs: options.answerMs },
    (line) => answered(line, startedAt),
    startedAt,
  );
  return { outcome, socket };
}

/** Sends one line of at least `bytes` over an open connection and waits for the same line back. */
export function echoStream(
  socket: Socket,
  before: Outcome,
  { timeoutMs, bytes }: { readonly timeoutMs: number; readonly bytes: number },
): Promise<Outcome> {
  const startedAt = performance.now();
  if (before.kind !== 'answered') return Promise.resolve(before);
  const line = `${`echo ${Math.random()} `.padEnd(bytes - 1, '.')}\n`;
  return converse(
    socket,
    line,
    { timeoutMs },
    (reply) => {
      if (reply !== line) throw new Error(`Echo of "${line.slice(0, 40)}" came back as "${reply.slice(0, 40)}"`);
      return { ...before, ms: elapsed(startedAt) };
    },
    startedAt,
  );
}

/** Writes a line and turns whatever comes first into an outcome: a line, an error, the end, the time limit. */
function converse(
  socket: Socket,
  question: string,
  { timeoutMs, answerMs = timeoutMs }: { readonly timeoutMs: number; readonly answerMs?: number | undefined },
  onLine: (line: string) => Outcome,
  startedAt: number,
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    let received = '';
    let isOver = false;
    const finish = (result: () => Outcome) => {
      isOver = true;
      clearTimeout(timer);
      socket.off('data', onData).off('error', onError).off('close', onClose);
      try {
        const outcome = result();
        if (outcome.kind !== 'answered') socket.destroy();
        resolve(outcome);
      } catch (error) {
        socket.destroy();
        reject(error);
      }
    };
    const onData = (chunk: string) => {
      received += chunk;
      const end = received.indexOf('\n');
      if (end >= 0) finish(() => onLine(received.slice(0, end + 1)));
    };
    const onError = (error: NodeJS.ErrnoException) => finish(() => failure(error, startedAt));
    const onClose = () => finish(() => failure(closedError(), startedAt));
    let timer: NodeJS.Timeout;
    const wait = (limitMs: number, onEnd: () => void) => {
      // What the kernel has for us by then counts: timers of a thread that got no processor come before its sockets.
      timer = setTimeout(() => setImmediate(() => isOver || onEnd()), patient(limitMs));
    };
    const giveUp = () => finish(() => timedOut(startedAt));
    wait(timeoutMs, () => {
      if (socket.connecting || answerMs <= timeoutMs) giveUp();
      else wait(answerMs - timeoutMs, giveUp);
    });
    if (socket.destroyed) {
      finish(() => failure(closedError(), startedAt));
      return;
    }
    socket.on('data', onData).on('error', onError).on('close', onClose);
    socket.write(question);
  });
}

function closedError(): NodeJS.ErrnoException {
  return Object.assign(new Error('Connection closed before the answer'), { code: 'ECONNRESET' });
}
