import {
  accept,
  cmp,
  counter,
  ct,
  drop,
  type Expression,
  fib,
  goto,
  hostOrder32,
  immediate,
  interfaceName,
  jump,
  lookup,
  meta,
  type NftFamily,
  networkOrder16,
  payload,
  returnToCaller,
  setMarkBits,
} from '../../src/netlink/nftables/index.ts';

/** What the rules below need in the tables `ip t` and `bridge t`. */
export const FORMS_SETUP = `
table ip t {
  counter hits { packets 0 bytes 0 }
  set s4 { type ipv4_addr; }
  set pairs { type ipv4_addr . ipv4_addr; }
  set dyn { type ipv4_addr; flags dynamic,timeout; timeout 1h; size 1000; }
  map services { type ipv4_addr . inet_proto . inet_service : verdict; }
  map affinity { type ipv4_addr . inet_service : mark; flags dynamic,timeout; timeout 1h; size 1000; }
  chain target { }
  chain pre { type nat hook prerouting priority -100; }
  chain post { type nat hook postrouting priority 100; }
  chain in { type filter hook input priority 0; }
  chain raw { type filter hook prerouting priority -300; }
}
table bridge t {
  set links { type ifname; }
  set macs { type ifname . ether_addr; }
  chain frames { type filter hook prerouting priority -300; }
}
`;

/** A rule as text for `nft`, and as expressions that say the same. */
export interface RuleForm {
  /** Of the table. @default 'ip' */
  readonly family?: NftFamily;
  readonly chain: 'pre' | 'post' | 'in' | 'raw' | 'frames';
  readonly text: string;
  /** As `nft` lists it, without what counters counted. @default as `text` */
  readonly listed?: string;
  readonly expressions: readonly Expression[];
}

const bytes = (...values: number[]) => Uint8Array.from(values);
const protocol = (number: number) => [meta('l4proto'), cmp.equal(bytes(number))];
const tcpDport = (port: number) => [...protocol(6), payload.dport(), cmp.equal(networkOrder16(port))];
const saddr = payload.saddr('IPv4');
const daddr = payload.daddr('IPv4');
const mark = (value: number) => hostOrder32(value);
const masked = (mask: Uint8Array): Expression => ({
  kind: 'bitwise',
  from: 0,
  to: 0,
  mask,
  xor: new Uint8Array(mask.length),
});

/** Every form of rule this program writes for which `nft` has a text. */
export const RULE_FORMS: readonly RuleForm[] = [
  { chain: 'in', text: 'ip saddr 10.0.0.1 drop', expressions: [saddr, cmp.equal(bytes(10, 0, 0, 1)), drop] },
  {
    chain: 'in',
    text: 'ip daddr != 10.96.0.0/12 accept',
    expressions: [daddr, masked(bytes(255, 240, 0, 0)), cmp.notEqual(bytes(10, 96, 0, 0)), accept],
  },
  { chain: 'in', text: 'tcp dport 80 counter', expressions: [...tcpDport(80), counter] },
  {
    chain: 'in',
    text: 'tcp dport != 1000-2000 return',
    expressions: [
      ...protocol(6),
      payload.dport(),
      { kind: 'range', from: 0, op: '!=', first: networkOrder16(1000), last: networkOrder16(2000) },
      returnToCaller,
    ],
  },
  {
    chain: 'in',
    text: 'ct state established,related accept',
    expressions: [ct('state'), masked(mark(6)), cmp.notEqual(mark(0)), accept],
  },
  {
    chain: 'post',
    text: 'ct status dnat masquerade random,persistent',
    expressions: [
      ct('status'),
      masked(mark(0x20)),
      cmp.notEqual(mark(0)),
      { kind: 'masquerade', flags: ['random', 'persistent'] },
    ],
  },
  {
    chain: 'in',
    text: 'ct original ip daddr 10.0.0.1 meta l4proto tcp ct original proto-dst 80 counter',
    expressions: [
      ct('daddr-ip', 0, 'original'),
      cmp.equal(bytes(10, 0, 0, 1)),
      ...protocol(6),
      ct('proto-dst', 0, 'original'),
      cmp.equal(networkOrder16(80)),
      counter,
    ],
  },
  {
    chain: 'in',
    text: 'meta mark set mark or 0x4000',
    listed: 'meta mark set meta mark | 0x00004000',
    expressions: setMarkBits(0x4000),
  },
  {
    chain: 'in',
    text: 'meta mark & 0x4000 == 0 goto target',
    listed: 'meta mark & 0x00004000 == 0x00000000 goto target',
    expressions: [meta('mark'), masked(mark(0x4000)), cmp.equal(mark(0)), goto('target')],
  },
  {
    chain: 'in',
    text: 'iifname "cni0" accept',
    expressions: [meta('iifname'), cmp.equal(interfaceName('cni0')), accept],
  },
  {
    chain: 'in',
    text: 'iifname "veth*" accept',
    expressions: [meta('iifname'), cmp.equal(Buffer.from('veth')), accept],
  },
  { chain: 'in', text: 'ip saddr @s4 drop', expressions: [saddr, lookup('s4'), drop] },
  { chain: 'in', text: 'ip saddr != @s4 drop', expressions: [saddr, lookup('s4', { invert: true }), drop] },
  {
    chain: 'in',
    text: 'ip daddr . meta l4proto . th dport vmap @services',
    expressions: [daddr, meta('l4proto', 1), payload.dport(2), lookup('services', { to: 'verdict' })],
  },
  {
    chain: 'pre',
    text: 'tcp dport 81 dnat to 10.1.0.1:8080',
    expressions: [
      ...tcpDport(81),
      immediate(bytes(10, 1, 0, 1), 0),
      immediate(networkOrder16(8080), 4),
      { kind: 'nat', type: 'dnat', family: 'ip', address: 0, port: 4 },
    ],
  },
  {
    chain: 'post',
    text: 'snat to 10.0.0.1-10.0.0.9 persistent',
    expressions: [
      immediate(bytes(10, 0, 0, 1), 0),
      immediate(bytes(10, 0, 0, 9), 4),
      { kind: 'nat', type: 'snat', family: 'ip', address: 0, addressMax: 4, flags: ['persistent'] },
    ],
  },
  {
    chain: 'post',
    text: 'meta l4proto tcp masquerade to :1024-2048 fully-random',
    expressions: [
      ...protocol(6),
      immediate(networkOrder16(1024), 0),
      immediate(networkOrder16(2048), 4),
      { kind: 'masquerade', port: 0, portMax: 4, flags: ['random-fully'] },
    ],
  },
  {
    chain: 'post',
    text: 'ip saddr . ip daddr @pairs masquerade',
    expressions: [saddr, payload.daddr('IPv4', 1), lookup('pairs'), { kind: 'masquerade' }],
  },
  {
    chain: 'pre',
    text: 'tcp dport 82 redirect to :8080',
    expressions: [...tcpDport(82), immediate(networkOrder16(8080), 0), { kind: 'redirect', port: 0 }],
  },
  {
    chain: 'in',
    text: 'fib daddr type local jump target',
    expressions: [fib('type', ['daddr']), cmp.equal(mark(2)), jump('target')],
  },
  {
    chain: 'in',
    text: 'fib saddr . iif oif exists accept',
    expressions: [
      { kind: 'fib', result: 'oif', flags: ['saddr', 'iif'], present: true, to: 0 },
      cmp.equal(mark(1)),
      accept,
    ],
  },
  {
    chain: 'post',
    text: 'rt ip nexthop @s4 accept',
    expressions: [{ kind: 'rt', key: 'nexthop-ip', to: 0 }, lookup('s4'), accept],
  },
  {
    chain: 'in',
    text: 'meta mark set numgen inc mod 4 offset 2',
    expressions: [
      { kind: 'numgen', mode: 'inc', modulus: 4, offset: 2, to: 0 },
      { kind: 'meta-set', key: 'mark', from: 0 },
    ],
  },
  {
    chain: 'in',
    text: 'meta mark set jhash ip saddr . ip daddr mod 8 seed 0x12345678',
    expressions: [
      payload.saddr('IPv4', 4),
      payload.daddr('IPv4', 5),
      { kind: 'jhash', from: 4, length: 8, to: 0, modulus: 8, seed: 0x12345678 },
      { kind: 'meta-set', key: 'mark', from: 0 },
    ],
  },
  {
    chain: 'in',
    text: 'update @dyn { ip saddr timeout 30s }',
    expressions: [saddr, { kind: 'dynset', operation: 'update', set: 'dyn', key: 0, timeoutMs: 30_000 }],
  },
  {
    chain: 'in',
    text: 'add @dyn { ip saddr limit rate over 10/second burst 5 packets } drop',
    listed: 'add @dyn { ip saddr limit rate over 10/second } drop',
    expressions: [
      saddr,
      {
        kind: 'dynset',
        operation: 'add',
        set: 'dyn',
        key: 0,
        expressions: [{ kind: 'limit', rate: 10, unit: 'second', burst: 5, of: 'packets', invert: true }],
      },
      drop,
    ],
  },
  {
    chain: 'in',
    text: 'update @affinity { ip saddr . th dport : 0x7 }',
    listed: 'update @affinity { ip saddr . th dport : 0x00000007 }',
    expressions: [
      saddr,
      payload.dport(1),
      immediate(mark(7), 4),
      { kind: 'dynset', operation: 'update', set: 'affinity', key: 0, data: 4 },
    ],
  },
  { chain: 'in', text: 'reject', expressions: [{ kind: 'reject', type: 'icmp', code: 3 }] },
  {
    chain: 'in',
    text: 'meta l4proto tcp reject with tcp reset',
    listed: 'reject with tcp reset',
    expressions: [...protocol(6), { kind: 'reject', type: 'tcp-reset' }],
  },
  {
    chain: 'in',
    text: 'counter packets 5 bytes 100',
    listed: 'counter',
    expressions: [{ kind: 'counter', packets: 5n, bytes: 100n }],
  },
  {
    chain: 'in',
    text: 'limit rate over 10/minute burst 7 packets drop',
    expressions: [{ kind: 'limit', rate: 10, unit: 'minute', burst: 7, of: 'packets', invert: true }, drop],
  },
  {
    chain: 'raw',
    text: 'udp dport 53 notrack',
    expressions: [...protocol(17), payload.dport(), cmp.equal(networkOrder16(53)), { kind: 'notrack' }],
  },
  {
    chain: 'in',
    text: 'log prefix "dropped: " level info',
    expressions: [{ kind: 'log', prefix: 'dropped: ', level: 6 }],
  },
  { chain: 'in', text: 'log group 3', expressions: [{ kind: 'log', group: 3 }] },
  { chain: 'in', text: 'counter name "hits"', expressions: [{ kind: 'objref', type: 'counter', name: 'hits' }] },
  {
    chain: 'in',
    text: 'udp dport set 53',
    expressions: [
      ...protocol(17),
      immediate(networkOrder16(53)),
      { kind: 'payload-set', base: 'transport', offset: 2, length: 2, from: 0, checksumOffset: 6 },
    ],
  },
  {
    chain: 'in',
    text: 'ct mark set meta mark',
    expressions: [meta('mark'), { kind: 'ct-set', key: 'mark', from: 0 }],
  },
  {
    chain: 'in',
    text: 'meta mark set meta mark << 2',
    expressions: [
      meta('mark'),
      { kind: 'shift', direction: 'left', from: 0, to: 0, length: 4, bits: 2 },
      { kind: 'meta-set', key: 'mark', from: 0 },
    ],
  },
  {
    chain: 'in',
    text: 'meta length < 100 accept',
    expressions: [
      meta('length'),
      { kind: 'byteorder', op: 'hton', from: 0, to: 0, length: 4, size: 4 },
      { kind: 'cmp', from: 0, op: '<', data: bytes(0, 0, 0, 100) },
      accept,
    ],
  },
  {
    family: 'bridge',
    chain: 'frames',
    text: 'iifname @links iifname . ether saddr != @macs counter drop',
    expressions: [
      meta('iifname'),
      lookup('links'),
      meta('iifname'),
      payload.etherSaddr(4),
      lookup('macs', { invert: true }),
      counter,
      drop,
    ],
  },
];
