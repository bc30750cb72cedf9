import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { patient } from '../patience.ts';
import { answered, answerLine, failure, plainAddress, timedOut } from './outcome.ts';
import type { ConnectOptions, Outcome, Target } from './protocol.ts';
import type { RunningServer } from './stream-server.ts';

/** A server that the machine leaves without a processor for a while must not lose datagrams for want of room. */
export const RECEIVE_BUFFER = 4 * 1024 * 1024;

/** A UDP server that answers every datagram with its name and the client it saw, followed by the datagram itself. */
export async function serveUdp(name: string, port: number, ip: string): Promise<RunningServer> {
  const socket = createSocket({ type: isIPv6(ip) ? 'udp6' : 'udp4', recvBufferSize: RECEIVE_BUFFER });
  socket.on('message', (data, from) => {
    const seen = { by: name, source: plainAddress(from.address), sourcePort: from.port };
    socket.send([Buffer.from(answerLine(seen)), data], from.port, from.address);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ port, address: ip }, resolve);
  });
  // An ICMP error for an earlier answer must not end the server.
  socket.on('error', () => {});
  return { stop: () => new Promise((resolve) => socket.close(() => resolve())) };
}

/** Sends one datagram and waits for the answer. */
export async function exchangeUdp(target: Target, options: ConnectOptions): Promise<Outcome> {
  const startedAt = performance.now();
  const socket = createSocket(isIPv6(target.ip) ? 'udp6' : 'udp4');
  try {
    return await ask(socket, target, options, startedAt);
  } finally {
    socket.close();
  }
}

function ask(socket: Socket, target: Target, options: ConnectOptions, startedAt: number): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const finish = (result: () => Outcome) => {
      clearTimeout(timer);
      try {
        resolve(result());
      } catch (error) {
        reject(error);
      }
    };
    const failed = (error: NodeJS.ErrnoException) => finish(() => failure(error, startedAt));
    // A datagram that was lost is not sent again: waiting longer hides nothing.
    const limitMs = options.answerMs ?? options.timeoutMs ?? 2000;
    const timer = setTimeout(() => finish(() => timedOut(startedAt)), patient(limitMs));
    socket.on('error', failed);
    const question = 'who'.padEnd((options.bytes ?? 0) - 1, '.').concat('\n');
    socket.on('message', (data) =>
      finish(() => {
        const [line = '', ...echo] = data.toString('utf8').split(/(?<=\n)/);
        if (echo.join('') !== question) throw new Error(`A datagram of ${question.length} bytes came back otherwise`);
        return answered(line, startedAt);
      }),
    );
    // Only a connected socket hears of ICMP errors, which is how a REJECT shows.
    socket.on('connect', () => socket.send(question, (error) => error && failed(error)));
    socket.bind(
      {
        ...(options.sourceIp === undefined ? {} : { address: options.sourceIp }),
        port: options.sourcePort ?? 0,
      },
      () => socket.connect(target.port, target.ip, (error?: Error) => error && failed(error)),
    );
  });
}
