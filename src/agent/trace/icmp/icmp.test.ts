import { expect, it } from 'vitest';
import { parseIp } from '../../../core/index.ts';
import type { TraceEvent } from '../../../netlink/nftables/index.ts';
import { FlowBook } from '../flow-book.ts';
import { TRACE_TABLE } from '../trace-table.ts';
import { fateOf } from '../traced-flow.ts';

const UDP = 17;
const ICMP = 1;
const [CLIENT, SERVER, STRANGER] = ['10.244.1.7', '10.244.1.9', '10.244.1.8'];

/** A look at a packet; what stands behind the network header is copied for 20 bytes. */
function event(id: number, chain: string, more: Partial<TraceEvent> = {}): TraceEvent {
  const place = {
    family: 'ip',
    tableFamily: 'inet',
    table: TRACE_TABLE,
    chain,
    type: 'policy',
    verdict: 'accept',
  } as const;
  const unknown = { handle: undefined, networkHeader: undefined, transportHeader: undefined };
  return { id, ...place, ...unknown, iif: undefined, oif: undefined, mark: 0, connection: undefined, ...more };
}

function packet(protocol: number, from: string, to: string, transport: readonly number[]) {
  const networkHeader = Uint8Array.of(
    0x45,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    64,
    protocol,
    0,
    0,
    ...[from, to].flatMap((ip) => [...parseIp(ip).bytes]),
  );
  return { networkHeader, transportHeader: Uint8Array.of(...transport, ...new Array<number>(16).fill(0)) };
}

/** A datagram that left the node, or that a rule took. */
function bookOf({ numbered = false, taken = false } = {}): FlowBook {
  const book = new FlowBook([{ source: undefined, destination: parseIp(SERVER), port: 53, protocol: UDP }]);
  const connection = numbered ? { id: 77, direction: 'original' as const } : undefined;
  const headers = packet(UDP, CLIENT, SERVER, [0x9c, 0x40, 0, 53]);
  book.packet(event(1, 'early-prerouting', { ...headers, connection, type: 'rule', verdict: 'continue' }), 10);
  if (taken) book.packet(event(1, 'gate', { table: 'fence', type: 'rule', handle: 7, verdict: 'drop' }), 10);
  else book.packet(event(1, 'late-postrouting', { connection }), 10);
  return book;
}

function tell(book: FlowBook, from: string, to: string, [type, code]: [number, number], numbered = false): FlowBook {
  const connection = numbered ? { id: 77, direction: 'reply' as const } : undefined;
  book.packet(event(2, 'tracked-prerouting', { ...packet(ICMP, from, to, [type, code, 0, 0]), connection }), 12);
  book.packet(event(2, 'late-postrouting', { connection }), 12);
  return book;
}

it.each([
  ['by the connection’s number', true],
  ['by its client', false],
])('a flow that ICMP refuses is refused, %s', (_, numbered) => {
  const [flow] = tell(bookOf({ numbered }), SERVER, CLIENT, [3, 3], numbered).flows;
  expect(fateOf(flow!)).toBe('refused');
  expect(flow).toMatchObject({ answeredAt: 12, back: { flags: `ICMP port-unreachable from ${SERVER}` } });
});

it.each<[string, string, [number, number]]>([
  ['is told of a smaller size', CLIENT, [3, 4]],
  ['is told of a better way', CLIENT, [5, 1]],
  ['is not told, but somebody else', STRANGER, [3, 3]],
])('a flow that %s is not refused', (_, to, what) => {
  expect(fateOf(tell(bookOf(), SERVER, to, what).flows[0]!)).toBe('no-reply');
});

it('a flow that a rule of this node refuses by ICMP is dropped by that rule', () => {
  const [flow] = tell(bookOf({ taken: true }), SERVER, CLIENT, [3, 3]).flows;
  expect(fateOf(flow!)).toBe('dropped');
  expect(flow).toMatchObject({ there: { drop: { table: 'fence', handle: 7 } } });
});
