import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { patient } from '../patience.ts';
import type { FlowOptions, FlowReport, Target } from './protocol.ts';
import { RECEIVE_BUFFER } from './udp.ts';

/** Answers that come later than this after the last datagram count as lost. */
const LAST_ANSWER_MS = 20_000;

export interface RunningFlow {
  report(): FlowReport;
  /** Sends nothing more, waits for the answers under way, and reports. */
  stop(): Promise<FlowReport>;
}

/** Sends numbered datagrams from one socket, evenly, and notes which of them a server of `serveUdp` answers. */
export async function runFlow(target: Target, { perSecond = 100 }: FlowOptions): Promise<RunningFlow> {
  const socket = createSocket({ type: isIPv6(target.ip) ? 'udp6' : 'udp4', recvBufferSize: RECEIVE_BUFFER });
  const waiting = new Set<number>();
  let sent = 0;
  let lastAnswerAt = performance.now();
  let longestSilenceMs = 0;
  // While nobody is there, sending fails with what ICMP said; the datagram is lost like any other.
  socket.on('error', () => {});
  socket.on('message', (data) => {
    // After the line that says who answers.
    const [, number] = data.toString('utf8').split('\n');
    if (!waiting.delete(Number(number))) return;
    const now = performance.now();
    longestSilenceMs = Math.max(longestSilenceMs, now - lastAnswerAt);
    lastAnswerAt = now;
  });
  await new Promise<void>((resolve) => socket.connect(target.port, target.ip, resolve));
  const send = () => {
    waiting.add(++sent);
    socket.send(`${sent}\n`, () => {});
  };
  send();
  // A late timer is not made up for: a burst could be more than a buffer holds.
  const timer = setInterval(send, 1000 / perSecond);
  const report = (): FlowReport => ({
    sent,
    answered: sent - waiting.size,
    longestSilenceMs: Math.round(longestSilenceMs),
  });
  return {
    report,
    async stop() {
      clearInterval(timer);
      const deadline = performance.now() + patient(LAST_ANSWER_MS);
      while (waiting.size > 0 && performance.now() < deadline) await delay(5);
      socket.close();
      return report();
    },
  };
}
