import type { FlowBook } from '../../src/agent/trace/flow-book.ts';
import { makeReport } from '../../src/agent/trace/make-report.ts';
import { TRACE_TABLE } from '../../src/agent/trace/trace-table.ts';
import { traceText } from '../../src/agent/trace/trace-text.ts';
import { parseIp } from '../../src/core/index.ts';
import type { Flow, FlowDirection } from '../../src/netlink/conntrack/index.ts';
import type { TraceEvent } from '../../src/netlink/nftables/index.ts';

export const TCP = 6;
export const SYN = 0x02;
export const SYN_ACK = 0x12;
export const RST = 0x14;
export const ends = (
  source: string,
  sourcePort: number,
  destination: string,
  destinationPort: number,
): FlowDirection => ({
  source: parseIp(source),
  sourcePort,
  destination: parseIp(destination),
  destinationPort,
});
export const ASKED = ends('10.244.1.7', 40000, '10.96.0.12', 80);
export const THERE = ends('10.244.1.7', 40000, '10.244.1.9', 8080);
export const BACK = ends('10.244.1.9', 8080, '10.244.1.7', 40000);
export const RESTORED = ends('10.96.0.12', 80, '10.244.1.7', 40000);
export const FLOW: Flow = {
  family: 'IPv4',
  protocol: TCP,
  original: ASKED,
  reply: BACK,
  id: 77,
  zone: 0,
  tuple: new Uint8Array(),
};
export const TUPLE = { source: undefined, destination: parseIp('10.96.0.12'), port: 80, protocol: TCP };

/** Headers as the kernel copies them. */
export function headers({ source, sourcePort, destination, destinationPort }: FlowDirection, flags: number) {
  const networkHeader = new Uint8Array(20);
  networkHeader[0] = 0x45;
  networkHeader[9] = TCP;
  networkHeader.set(source.bytes, 12);
  networkHeader.set(destination.bytes, 16);
  const transportHeader = new Uint8Array(20);
  const view = new DataView(transportHeader.buffer);
  view.setUint16(0, sourcePort);
  view.setUint16(2, destinationPort);
  transportHeader[13] = flags;
  return { networkHeader, transportHeader };
}

export const event = (id: number, chain: string, more: Partial<TraceEvent> = {}): TraceEvent => ({
  id,
  family: 'ip',
  tableFamily: 'inet',
  table: TRACE_TABLE,
  chain,
  type: 'policy',
  handle: undefined,
  verdict: 'accept',
  networkHeader: undefined,
  transportHeader: undefined,
  iif: undefined,
  oif: undefined,
  mark: 0,
  connection: undefined,
  ...more,
});

/** The whole way of a packet through the node, with the connection's number or, as older kernels have it, without. */
export function pass(
  id: number,
  ways: readonly [FlowDirection, FlowDirection],
  flags: number,
  numbered: boolean,
): TraceEvent[] {
  const direction = flags === SYN ? ('original' as const) : ('reply' as const);
  const connection = numbered ? { id: 77, direction } : undefined;
  const [before, after] = ways;
  return [
    event(id, 'early-prerouting', { ...headers(before, flags), iif: 4, type: 'rule', verdict: 'continue' }),
    event(id, 'tracked-prerouting', { ...headers(before, flags), iif: 4, connection }),
    event(id, 'late-prerouting', { ...headers(after, flags), iif: 4, connection }),
    event(id, 'early-forward', { ...headers(after, flags), iif: 4, oif: 5, connection }),
    event(id, 'late-forward', { ...headers(after, flags), iif: 4, oif: 5, connection }),
    event(id, 'late-postrouting', { ...headers(after, flags), oif: 5, connection, type: 'rule', verdict: 'continue' }),
    event(id, 'late-postrouting', { connection }),
  ];
}

export function told(book: FlowBook, more: Partial<Parameters<typeof makeReport>[0]> = {}) {
  const report = makeReport({
    question: { tuples: [TUPLE], service: undefined },
    book,
    began: 0,
    ended: 3000,
    probe: undefined,
    lost: false,
    legacy: { counted: [], dropOf: () => undefined, unseen: undefined },
    ipvs: [],
    ipvsServers: [],
    dropReasons: undefined,
    linkName: (index) => `veth${index}`,
    ruleText: () => 'tcp dport 8080 drop',
    ...more,
  });
  return { report, text: traceText(report, (text) => (text === '10.244.1.9:8080' ? 'shop/web' : undefined)) };
}
