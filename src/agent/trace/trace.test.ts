import { describe, expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import type { Flow, FlowDirection } from '../../netlink/conntrack/index.ts';
import type { TraceEvent } from '../../netlink/nftables/index.ts';
import { readDropped } from './drops/drop-reasons.ts';
import { FlowBook } from './flow-book.ts';
import { compareIpvs, type IpvsServerView } from './ipvs-view.ts';
import { legacyDropOf, readStep } from './legacy/legacy-steps.ts';
import { legacyDrops, parseTables } from './legacy/saved-tables.ts';
import { makeReport } from './make-report.ts';
import { TRACE_TABLE } from './trace-table.ts';
import { traceText } from './trace-text.ts';

const TCP = 6;
const SYN = 0x02;
const SYN_ACK = 0x12;
const RST = 0x14;
const ends = (source: string, sourcePort: number, destination: string, destinationPort: number): FlowDirection => ({
  source: parseIp(source),
  sourcePort,
  destination: parseIp(destination),
  destinationPort,
});
const ASKED = ends('10.244.1.7', 40000, '10.96.0.12', 80);
const THERE = ends('10.244.1.7', 40000, '10.244.1.9', 8080);
const BACK = ends('10.244.1.9', 8080, '10.244.1.7', 40000);
const RESTORED = ends('10.96.0.12', 80, '10.244.1.7', 40000);
const FLOW: Flow = {
  family: 'IPv4',
  protocol: TCP,
  original: ASKED,
  reply: BACK,
  id: 77,
  zone: 0,
  tuple: new Uint8Array(),
};
const TUPLE = { source: undefined, destination: parseIp('10.96.0.12'), port: 80, protocol: TCP };

/** Headers as the kernel copies them. */
function headers({ source, sourcePort, destination, destinationPort }: FlowDirection, flags: number) {
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

const event = (id: number, chain: string, more: Partial<TraceEvent> = {}): TraceEvent => ({
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
function pass(
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

function told(book: FlowBook, more: Partial<Parameters<typeof makeReport>[0]> = {}) {
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

describe('a flow', () => {
  it.each([
    ['with the connection’s number', true, false],
    ['by addresses', false, true],
    ['by addresses, what conntrack says being late', false, false],
  ])('is put together %s', (_, numbered, conntrack) => {
    const book = new FlowBook([TUPLE]);
    for (const one of pass(1, [ASKED, THERE], SYN, numbered)) book.packet(one, 10);
    if (conntrack) book.connection({ kind: 'changed', flow: FLOW, answered: false }, 11);
    for (const one of pass(2, [BACK, RESTORED], SYN_ACK, numbered)) book.packet(one, 12);
    const { report, text } = told(book);
    expect(report.flows).toMatchObject([{ fate: 'answered', endpoint: '10.244.1.9:8080', answeredAfterMs: 2 }]);
    expect(report.verdict).toBe('works');
    expect(text.split('\n')[1]).toBe(
      '  10.244.1.7:40000 SYN -> DNAT 10.244.1.9:8080 (shop/web) -> veth5; answered with SYN-ACK after 2 ms',
    );
  });

  it('that is reset is refused', () => {
    const book = new FlowBook([TUPLE]);
    for (const one of pass(1, [ASKED, THERE], SYN, true)) book.packet(one, 10);
    for (const one of pass(2, [BACK, RESTORED], RST, true)) book.packet(one, 10);
    expect(told(book).report).toMatchObject({ verdict: 'fails', flows: [{ fate: 'refused', replyFlags: 'ACK-RST' }] });
  });

  it('without an answer says for how long, and is not certain when events were lost', () => {
    const book = new FlowBook([TUPLE]);
    for (const one of pass(1, [ASKED, THERE], SYN, true)) book.packet(one, 1000);
    expect(told(book).text).toMatch(
      /^FAILS .*\n.* -> veth5; no reply in 2 s\n {2}why: nodeplane explain 10\.96\.0\.12:80\n$/,
    );
    expect(told(book, { lost: true }).report).toMatchObject({
      verdict: 'unknown',
      incomplete: [expect.stringContaining('ENOBUFS')],
    });
  });

  it('that is dropped names the rule, and what comes again may get further', () => {
    const book = new FlowBook([TUPLE]);
    const [first, second] = pass(1, [ASKED, THERE], SYN, true);
    for (const one of [first!, second!]) book.packet(one, 10);
    book.packet(event(1, 'gate', { table: 'fence', type: 'rule', handle: 9, verdict: 'drop' }), 10);
    expect(told(book).text).toMatch(
      /; dropped in table inet fence, chain gate, by rule 9: tcp dport 8080 drop\n {2}why: nodeplane explain 10\.96\.0\.12:80\n$/,
    );
    for (const one of pass(2, [ASKED, THERE], SYN, true)) book.packet(one, 1000);
    expect(told(book).report.flows).toMatchObject([{ fate: 'no-reply', drop: null }]);
  });

  it('that goes on by lo is dropped where it comes in again', () => {
    const book = new FlowBook([TUPLE]);
    const connection = { id: 77, direction: 'original' } as const;
    book.packet(event(1, 'early-output', { ...headers(ASKED, SYN), oif: 1, connection }), 10);
    book.packet(event(1, 'late-postrouting', { ...headers(THERE, SYN), oif: 1, connection }), 10);
    book.packet(event(2, 'early-prerouting', { ...headers(THERE, SYN), iif: 1, connection }), 10);
    book.packet(event(2, 'gate', { table: 'fence', type: 'rule', handle: 9, verdict: 'drop' }), 10);
    expect(told(book).report.flows).toMatchObject([{ fate: 'dropped', drop: { chain: 'gate' } }]);
  });

  it('that began just before the end has not failed yet, and does not hide one that has', () => {
    const book = new FlowBook([TUPLE]);
    const later = { ...ASKED, sourcePort: 40001 };
    for (const one of pass(3, [later, later], SYN, false)) book.packet(one, 2500);
    expect(told(book)).toMatchObject({ report: { verdict: 'unknown', flows: [{ fate: 'no-reply' }] } });
    for (const one of pass(1, [ASKED, THERE], SYN, true)) book.packet(one, 10);
    expect(told(book).report.verdict).toBe('fails');
    for (const one of pass(2, [BACK, RESTORED], SYN_ACK, true)) book.packet(one, 12);
    expect(told(book).report.verdict).toBe('works');
  });

  it('that vanishes says between which looks', () => {
    const book = new FlowBook([TUPLE]);
    for (const one of pass(1, [ASKED, THERE], SYN, true).slice(0, 4)) book.packet(one, 10);
    expect(told(book).text).toContain("; lost in hook forward, by none of nf_tables' rules\n");
  });

  it('of others is not told', () => {
    const book = new FlowBook([TUPLE]);
    for (const one of pass(1, [BACK, THERE], SYN_ACK, false)) book.packet(one, 10);
    expect(told(book)).toMatchObject({ report: { verdict: 'unknown', flows: [] } });
  });

  it('is one of so many', () => {
    const book = new FlowBook([TUPLE]);
    for (let port = 1; port <= 300; port++) {
      const asked = { ...ASKED, sourcePort: port };
      for (const one of pass(port, [asked, asked], SYN, false)) book.packet(one, 10);
    }
    expect(book.flows).toHaveLength(100);
    expect(told(book).report.incomplete).toEqual(['more flows were seen than are kept']);
  });
});

it('tells what virtual servers of IPVS did meanwhile', () => {
  const none = { connections: 0n, packetsIn: 0n, packetsOut: 0n, bytesIn: 0n, bytesOut: 0n };
  const view = (statistics: object, activeConnections: number): IpvsServerView => ({
    tuple: TUPLE,
    statistics: { ...none, ...statistics },
    destinations: [
      {
        address: parseIp('10.244.1.9'),
        port: 8080,
        weight: 1,
        activeConnections,
        inactiveConnections: 2,
        persistentConnections: 0,
      },
    ],
  });
  const before = view({ connections: 5n, packetsIn: 10n }, 0);
  const ipvsServers = compareIpvs([before], [view({ connections: 6n, packetsIn: 13n, packetsOut: 2n }, 1)]);
  expect(told(new FlowBook([TUPLE]), { ipvsServers }).text).toContain(
    '  IPVS 10.96.0.12:80/tcp, for anybody, by its last count: 1 connections, 3 packets in, 2 out; 10.244.1.9:8080 (shop/web) weight 1, active 0 -> 1, inactive 2 -> 2\n',
  );
});

describe('what the kernel dropped', () => {
  const drop = (reason: string) => ({ reason, place: 'udp_queue_rcv_one_skb' });
  const packet = (ends: FlowDirection) => ({ ...ends, protocol: TCP, flags: 'SYN' });
  const passed = () => {
    const book = new FlowBook([TUPLE]);
    for (const one of pass(1, [ASKED, THERE], SYN, true)) book.packet(one, 1000);
    return book;
  };

  it('is told of a flow by its headers, translated or not, whatever comes first', () => {
    for (const ends of [ASKED, THERE, BACK, RESTORED]) {
      const book = new FlowBook([TUPLE]);
      book.dropped(packet(ends), drop('NOT_SPECIFIED'));
      book.dropped(packet(ends), drop('NO_SOCKET'));
      book.dropped(packet(ends), drop('NOT_SPECIFIED'));
      for (const one of pass(1, [ASKED, THERE], SYN, true)) book.packet(one, 1000);
      book.settle();
      expect(told(book).text).toContain('; no reply in 2 s; dropped: NO_SOCKET at udp_queue_rcv_one_skb\n');
    }
  });

  it('of others counts for nothing, and neither does what was sent once more and answered', () => {
    const book = passed();
    book.dropped(packet({ ...THERE, sourcePort: 40001 }), drop('NO_SOCKET'));
    book.settle();
    expect(told(book).report.flows).toMatchObject([{ fate: 'no-reply', kernelDrop: null }]);
    book.dropped(packet(THERE), drop('NEIGH_FAILED'));
    for (const one of pass(2, [BACK, RESTORED], SYN_ACK, true)) book.packet(one, 2000);
    book.settle();
    expect(told(book).report.flows).toMatchObject([{ fate: 'answered', kernelDrop: null }]);
  });

  it('is not known, and it is said why, where a flow fails', () => {
    const dropReasons = 'this kernel has no drop monitor';
    expect(told(passed(), { dropReasons }).text).toContain(`  drop reasons are not told: ${dropReasons}\n`);
  });

  it.each([
    ['Ethernet', 14, 0x0800],
    ['a VLAN', 18, 0x0800],
    ['no link header', 0, 0x0800],
    ['something else than IP', 14, 0x0806],
  ])('is read behind %s', (_, start, etherType) => {
    const { networkHeader, transportHeader } = headers(THERE, SYN);
    const bytes = Buffer.alloc(start + 40);
    if (start > 0) bytes.writeUInt16BE(etherType, start - 2);
    bytes.set([...networkHeader, ...transportHeader], start);
    const read = readDropped({ bytes, etherType, place: '', reason: undefined });
    if (etherType === 0x0800) expect(read).toMatchObject({ ...THERE, protocol: TCP, flags: 'SYN' });
    else expect(read).toBeUndefined();
  });
});

it('compares what legacy rules count', () => {
  const save = (dropped: number, accepted: number, policy: number) =>
    parseTables(`# Generated
*filter
:INPUT ACCEPT [10:600]
:FORWARD DROP [${policy}:60]
[${dropped}:60] -A FORWARD -p tcp -m tcp --dport 8080 -j DROP
[${accepted}:60] -A FORWARD -j ACCEPT
COMMIT
`);
  expect(legacyDrops(save(1, 1, 0), save(3, 9, 1))).toEqual([
    { table: 'filter', rule: '-P FORWARD -j DROP', packets: 1 },
    { table: 'filter', rule: '-A FORWARD -p tcp -m tcp --dport 8080 -j DROP', packets: 2 },
  ]);
  expect(legacyDrops(undefined, save(1, 1, 1))).toEqual([]);
});

describe('a packet in legacy iptables', () => {
  const tables = (policy = 'ACCEPT', rules = ['-A FORWARD -j SUB', '-A SUB -p tcp -j DROP']) =>
    parseTables(`*filter
:INPUT ACCEPT [10:600]
:FORWARD ${policy} [0:0]
:SUB - [0:0]
${rules.map((rule) => `[1:60] ${rule}\n`).join('')}COMMIT
`);
  const forward = 2;
  const step = (prefix: string, ends = THERE, hook = forward) => {
    const { networkHeader, transportHeader } = headers(ends, SYN);
    return readStep({ prefix, hook, bytes: Buffer.concat([networkHeader, transportHeader]) })!;
  };
  /** A SYN that is seen before all rules of the hook, and not behind them. */
  const lostFlow = () => {
    const book = new FlowBook([TUPLE]);
    for (const one of pass(1, [ASKED, THERE], SYN, false).slice(0, 4)) book.packet(one, 10);
    return book;
  };
  const dropOf = (steps: readonly ReturnType<typeof step>[], before = tables(), after = before) =>
    legacyDropOf(lostFlow().flows[0]!, 'there', steps, [before, after]);

  it('is read as the kernel logs it', () => {
    expect(step('TRACE: filter:a:b:rule:12 ')).toMatchObject({
      table: 'filter',
      chain: 'a:b',
      type: 'rule',
      number: 12,
    });
    expect(step('TRACE: nat:PREROUTING:policy:2 ', ASKED, 0)).toMatchObject({ hook: 'prerouting', type: 'policy' });
    expect(step('my own log ')).toBeUndefined();
    expect(readStep({ prefix: 'TRACE: raw:PREROUTING:rule:1 ', hook: 0, bytes: new Uint8Array(3) })).toBeUndefined();
  });

  it('was taken by the last rule that it met in the hook it is lost in', () => {
    const steps = [
      step('TRACE: nat:PREROUTING:rule:1 ', ASKED, 0),
      step('TRACE: filter:FORWARD:rule:1 '),
      step('TRACE: filter:SUB:rule:1 '),
      step('TRACE: filter:FORWARD:policy:2 ', BACK),
    ];
    expect(dropOf(steps)).toEqual({ table: 'filter', chain: 'SUB', rule: 1, text: '-A SUB -p tcp -j DROP' });
    const legacy = {
      counted: [{ table: 'filter', rule: 'x', packets: 1 }],
      dropOf: () => dropOf(steps),
      unseen: undefined,
    };
    const { report, text } = told(lostFlow(), { legacy });
    expect(text).toContain(
      '; lost in hook forward, by legacy iptables, table filter, chain SUB: rule 1: -A SUB -p tcp -j DROP',
    );
    expect(report.legacyDrops).toEqual([]);
  });

  it('was taken by a policy', () => {
    const steps = [step('TRACE: filter:FORWARD:policy:2 ')];
    expect(dropOf(steps, tables('DROP'))).toEqual({
      table: 'filter',
      chain: 'FORWARD',
      rule: null,
      text: '-P FORWARD -j DROP',
    });
    expect(dropOf(steps)).toBeUndefined();
  });

  it('is not blamed on a text that stands there by now', () => {
    const steps = [step('TRACE: filter:SUB:rule:1 ')];
    const later = tables('ACCEPT', ['-A FORWARD -j SUB', '-A SUB -s 10.0.0.1/32 -j DROP', '-A SUB -p tcp -j DROP']);
    expect(dropOf(steps, tables(), later)).toEqual({ table: 'filter', chain: 'SUB', rule: 1, text: null });
    expect(dropOf([])).toBeUndefined();
  });

  it('is told by counters where it cannot be followed, and why', () => {
    const counted = [{ table: 'filter', rule: '-A FORWARD -j DROP', packets: 2 }];
    const { text } = told(lostFlow(), { legacy: { counted, dropOf: () => undefined, unseen: 'EPERM' } });
    expect(text).toContain('lost in hook forward, by none of nf_tables');
    expect(text).toContain('met -A FORWARD -j DROP\n');
    expect(text).toContain('incomplete: of the rules of legacy iptables only what they count is known: EPERM\n');
  });
});
