import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Nftables, type NftChange, type NftEvent, watchNftables } from '../../../src/netlink/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';

let namespace: TestNamespace;
let nft: Nftables;

beforeAll(() => {
  namespace = createNamespace('nftmonitor');
  nft = inNetns(namespace.path, () => Nftables.open());
});
afterAll(() => {
  nft.close();
  removeAll();
});

/** What was told, in short. */
function short(event: NftEvent): string {
  if (event.kind === 'overrun') return 'overrun';
  if (event.kind === 'generation') return `generation ${event.own ? 'own' : event.processName}`;
  const { object } = event;
  return `${event.kind} ${object.kind}${'name' in object ? ` ${object.name}` : ''}`;
}

const T = { family: 'ip6', table: 't' } as const;
const TABLE: NftChange[] = [
  { operation: 'add', object: { kind: 'table', family: 'ip6', name: 't' } },
  { operation: 'add', object: { kind: 'chain', ...T, name: 'c' } },
  { operation: 'add', object: { kind: 'set', ...T, name: 's', key: ['mark'] } },
  { operation: 'add', object: { kind: 'elements', ...T, set: 's', elements: [{ key: Uint8Array.of(1, 2, 3, 4) }] } },
];

it('tells own and foreign changes as they are made, a flush by others too', async () => {
  const events: NftEvent[] = [];
  const monitor = inNetns(namespace.path, () => watchNftables((event) => events.push(event)));
  nft.commit(TABLE);
  await expect
    .poll(() => events.map(short))
    .toEqual(['new table t', 'new chain c', 'new set s', 'new elements', 'generation own']);
  expect(events[3]).toMatchObject({ object: { family: 'ip6', table: 't', set: 's', elements: [{}] } });
  expect(events.at(-1)).toMatchObject({ generation: nft.generation() });
  events.length = 0;
  await nft.commitAsync([{ operation: 'flush', object: { kind: 'set', ...T, name: 's' } }]);
  await expect.poll(() => events.map(short)).toEqual(['generation own']);
  events.length = 0;
  namespace.run('nft', 'flush', 'ruleset');
  await expect.poll(() => events.map(short)).toContain('generation nft');
  expect(events.map(short)).toEqual(expect.arrayContaining(['deleted table t', 'deleted chain c', 'deleted set s']));
  monitor.close();
  monitor.close();
  nft.commit(TABLE);
  nft.commit([{ operation: 'delete', object: { kind: 'table', family: 'ip6', name: 't' } }]);
  expect(events.map(short)).not.toContain('generation own');
});

it('tells the generations of own changes alone where that is asked for, also over sockets that are opened later', async () => {
  const events: NftEvent[] = [];
  const watch = () => watchNftables((event) => events.push(event), { withoutOwn: true });
  const monitor = inNetns(namespace.path, watch);
  const later = inNetns(namespace.path, () => Nftables.open());
  nft.commit(TABLE);
  later.commit([{ operation: 'flush', object: { kind: 'set', ...T, name: 's' } }]);
  namespace.run('nft', 'delete', 'table', 'ip6', 't');
  await expect.poll(() => events.map(short)).toContain('generation nft');
  expect(events.map(short).slice(0, 2)).toEqual(['generation own', 'generation own']);
  expect(events.map(short)).toEqual(expect.arrayContaining(['deleted table t', 'deleted chain c', 'deleted set s']));
  monitor.close();
  later.close();
});

it('says when events were lost, and goes on', async () => {
  nft.commit(TABLE);
  const events: NftEvent[] = [];
  const monitor = inNetns(namespace.path, () => watchNftables((event) => events.push(event), { bufferBytes: 50_000 }));
  const elements = Array.from({ length: 20_000 }, (_, i) => ({ key: new Uint8Array(Uint32Array.of(i).buffer) }));
  nft.commit([{ operation: 'add', object: { kind: 'elements', ...T, set: 's', elements } }]);
  await expect.poll(() => events.map(short)).toContain('overrun');
  events.length = 0;
  nft.commit([{ operation: 'delete', object: { kind: 'table', family: 'ip6', name: 't' } }]);
  await expect.poll(() => events.map(short)).toContain('deleted table t');
  monitor.close();
});

it('is not sent what a large transaction of this process changes, and hears what comes after it', async () => {
  nft.commit(TABLE);
  const events: NftEvent[] = [];
  const watch = () => watchNftables((event) => events.push(event), { bufferBytes: 50_000 });
  const [monitor, elsewhere] = [inNetns(namespace.path, watch), watchNftables((event) => events.push(event))];
  const elements = Array.from({ length: 20_000 }, (_, i) => ({ key: new Uint8Array(Uint32Array.of(i).buffer) }));
  const { generation } = await nft.commitAsync([
    { operation: 'add', object: { kind: 'elements', ...T, set: 's', elements } },
  ]);
  // Heard, it would be an overrun of so small a queue.
  expect(events).toEqual([expect.objectContaining({ kind: 'generation', generation, own: true })]);
  events.length = 0;
  namespace.run('nft', 'delete', 'table', 'ip6', 't');
  await expect.poll(() => events.map(short)).toContain('generation nft');
  expect(events.map(short)).toContain('deleted table t');
  monitor.close();
  elsewhere.close();
});

it('is not sent what a program of ours changes, and is told when there was more than that', async () => {
  const events: NftEvent[] = [];
  const monitor = inNetns(namespace.path, () => watchNftables((event) => events.push(event), { withoutOwn: true }));
  const restore = (...tables: string[]) => {
    const input = tables.map((table) => `*${table}\n:KUBE-X - [0:0]\n-A KUBE-X -j RETURN\nCOMMIT\n`).join('');
    namespace.run('sh', '-c', `printf '${input}' | iptables-nft-restore --noflush`);
  };
  await nft.byProgram(2, async () => restore('filter', 'nat'));
  expect(events.map(short)).toEqual(['generation own']);
  await nft.byProgram(1, async () => restore('filter', 'nat'));
  expect(events.map(short)).toEqual(['generation own', 'overrun']);
  const failing = nft.byProgram(2, async () => {
    restore('filter');
    restore('mangles');
  });
  await expect(failing).rejects.toThrow('mangles');
  expect(events.map(short)).toEqual(['generation own', 'overrun', 'overrun']);
  restore('nat');
  await expect.poll(() => events.map(short).at(-1)).toMatch(/^generation (?:ip|xtables-nft)/);
  monitor.close();
});

it('prints what it is told with NODEPLANE_NETLINK_DEBUG', async () => {
  const print = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const printed = () => print.mock.calls.map(([line]) => String(line)).join('');
  vi.stubEnv('NODEPLANE_NETLINK_DEBUG', '1');
  const monitor = inNetns(namespace.path, () => watchNftables(() => {}));
  try {
    namespace.run('nft', 'add', 'table', 'ip', 'theirs');
    // NFT_MSG_NEWTABLE of NFNL_SUBSYS_NFTABLES, with the name of the table.
    await expect.poll(printed).toMatch(new RegExp(`^netlink < \\S.*${Buffer.from('theirs').toString('hex')}`, 'm'));
  } finally {
    monitor.close();
    vi.unstubAllEnvs();
    print.mockRestore();
  }
});
