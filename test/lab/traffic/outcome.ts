import type { Outcome, Seen } from './protocol.ts';

/** Which errno means what to someone who asks "who answered me?". */
const KINDS: Readonly<Record<string, 'refused' | 'unreachable' | 'broken' | 'timeout'>> = {
  ECONNREFUSED: 'refused',
  ECONNRESET: 'broken',
  EPIPE: 'broken',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  // ICMPv6 "administratively prohibited" (tab_unreach, net/ipv6/icmp.c), by which firewalld refuses.
  EACCES: 'unreachable',
  // A packet dropped on the own host's way out: UDP hears of it, TCP does not.
  EPERM: 'timeout',
  ETIMEDOUT: 'timeout',
};

/** The outcome of a failed socket operation; rethrows what the network cannot cause (EADDRINUSE, EINVAL). */
export function failure(error: NodeJS.ErrnoException, startedAt: number): Outcome {
  const errno = error.code ?? '';
  const kind = KINDS[errno];
  if (!kind) throw error;
  return { kind, errno, ms: elapsed(startedAt) };
}

/** The outcome of an answer line, as `answerLine` writes it. */
export function answered(line: string, startedAt: number): Outcome {
  return { kind: 'answered', ms: elapsed(startedAt), ...(JSON.parse(line) as Seen) };
}

export function timedOut(startedAt: number): Outcome {
  return { kind: 'timeout', ms: elapsed(startedAt) };
}

/** One line saying who answers and whom it saw. */
export function answerLine(seen: Seen): string {
  return `${JSON.stringify(seen)}\n`;
}

/** Servers listen on `::` for both families; IPv4 clients then appear as ::ffff:a.b.c.d. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
}

/** In milliseconds, to a microsecond: a round trip between namespaces takes 30. */
export function elapsed(startedAt: number): number {
  return Math.round((performance.now() - startedAt) * 1000) / 1000;
}
