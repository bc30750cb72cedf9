import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/index.ts';
import { Nftables, watchNftables } from '../../../src/netlink/nftables/index.ts';
import { FamilyProxy, type ProxyEvent } from '../../../src/proxy/index.ts';
import { IptablesDataplane, JUMPS } from '../../../src/proxy/iptables/index.ts';
import { type IptablesVariant, NftTables, TABLES } from '../../../src/proxy/rules/index.ts';
import { type Exec, inNetns } from '../../../src/sys/index.ts';
import { FakeServiceStore, makeService, makeSlice } from '../../fakes/service-objects.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { execIn, saved, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

const JUMP = ['-m', 'comment', '--comment', 'kubernetes service portals', '-j', 'KUBE-SERVICES'];

// A proxy that goes on running while somebody else tampers with its rules.
describe.each(['legacy', 'nft'] as IptablesVariant[])('%s: while the proxy runs', (variant) => {
  let namespace: TestNamespace;
  let exec: Exec;
  let proxy: FamilyProxy;
  let events: ProxyEvent[];
  const iptables = (...args: string[]) => namespace.run(`iptables-${variant}`, ...args);
  const count = (kind: ProxyEvent['kind']) => events.filter((event) => event.kind === kind).length;
  const until = async (reached: () => boolean) => {
    while (!reached()) await delay(10);
  };

  beforeEach(async () => {
    namespace = createNamespace(`drift-${variant}`);
    exec = execIn(namespace);
    events = [];
    const store = new FakeServiceStore();
    for (let n = 0; n < 30; n++) {
      const name = `shop/web-${n}`;
      store.services.set(name, makeService(name, { clusterIP: `10.96.0.${n + 1}` }));
      if (n % 5 > 0) store.slicesByService.set(name, [makeSlice(name, [`10.244.1.${n}`, `10.244.2.${n}`])]);
    }
    proxy = new FamilyProxy({
      clock: systemClock,
      nodeName: 'n1',
      store,
      localAddresses: () => ({ all: [], own: [] }),
      minIntervalMs: 0,
      maxIntervalMs: 3_600_000,
      verifyIntervalMs: 100,
      retry: { firstMs: 100, maxMs: 1_000 },
      settings: {
        detectLocal: { mode: 'NodeCIDR' },
        masqueradeBit: 14,
        masqueradeAll: false,
        nodePortAddresses: 'all',
      },
      dataplane: new IptablesDataplane({
        family: 'IPv4',
        variant,
        exec,
        kernelTables: variant === 'nft' ? tablesIn(namespace) : undefined,
      }),
      // That nothing was found is told ten times a second here.
      observers: [(event) => void (event.kind !== 'verified' && events.push(event))],
    });
    proxy.start();
    await until(() => count('syncFinished') === 1);
  });
  afterEach(async () => {
    await proxy.stop();
    namespace.remove();
  });

  it.each<[string, readonly string[][]]>([
    ['a deleted jump', [['-t', 'nat', '-D', 'PREROUTING', '1']]],
    ['a deleted jump of table filter', [['-D', 'FORWARD', '1']]],
    [
      'a jump that is there twice and thrice',
      [
        ['-t', 'nat', '-A', 'PREROUTING', ...JUMP],
        ['-t', 'nat', '-I', 'OUTPUT', ...JUMP],
        ['-t', 'nat', '-I', 'OUTPUT', ...JUMP],
      ],
    ],
    ['a flushed chain', [['-t', 'nat', '-F', 'KUBE-MARK-MASQ']]],
    ['a deleted rule', [['-t', 'nat', '-D', 'KUBE-POSTROUTING', '2']]],
    [
      'a flushed nat table',
      [
        ['-t', 'nat', '-F'],
        ['-t', 'nat', '-X'],
      ],
    ],
  ])('%s is repaired', async (_, tampering) => {
    const before = await saved(exec, 'IPv4', variant);
    for (const args of tampering) iptables(...args);
    expect(await saved(exec, 'IPv4', variant)).not.toEqual(before);
    await until(() => count('driftFound') > 0 && count('syncFinished') > 1);
    // Tampering in two steps may be noticed, and repaired, between them.
    await until(() => events.at(-1)!.kind === 'syncFinished');
    await delay(250);
    await until(() => events.at(-1)!.kind === 'syncFinished');
    expect(await saved(exec, 'IPv4', variant)).toEqual(before);
    expect(count('syncFailed')).toBe(0);
  });

  if (variant === 'nft') {
    it('a table that is put to sleep is woken', async () => {
      const nft = (text: string) => namespace.run('nft', text);
      for (const table of TABLES) {
        // Until it is known that nobody has written to it.
        await delay(250);
        nft(`add table ip ${table} { flags dormant; }`);
        await until(() => !nft(`list table ip ${table}`).includes('flags dormant'));
      }
      const found = events.flatMap((event) => (event.kind === 'driftFound' ? event.drifts : []));
      expect(found.map(({ object, theirs }) => [object, theirs])).toEqual(
        TABLES.map((table) => [`table ${table}`, ['flags dormant;']]),
      );
    });

    it.each<[string, string, string, string?]>([
      // With the rule that it had, which packets meet at the wrong time, or never.
      ['at another priority', 'PREROUTING', '{ type nat hook prerouting priority -90; }', 'KUBE-SERVICES'],
      ['at no hook', 'POSTROUTING', '', 'KUBE-POSTROUTING'],
      // The kernel takes the rules nowhere else.
      ['at another hook', 'PREROUTING', '{ type nat hook input priority 100; }'],
      ['of another type', 'OUTPUT', '{ type filter hook output priority -100; policy drop; }'],
    ])('a chain that others made anew %s is put back', async (_, chain, declaration, target) => {
      const before = await saved(exec, 'IPv4', variant);
      const nft = (text: string) => namespace.run('nft', text);
      const rule = target ? `; add rule ip nat ${chain} jump ${target}` : '';
      nft(`delete chain ip nat ${chain}; add chain ip nat ${chain} ${declaration}${rule}`);
      await until(() => count('driftFound') > 0 && count('syncFinished') > 1);
      const [found] = events.flatMap((event) => (event.kind === 'driftFound' ? event.drifts : []));
      expect(found).toMatchObject({ object: `base chain nat ${chain}`, difference: 'changed' });
      expect(await saved(exec, 'IPv4', variant)).toEqual(before);
      // A policy is the administrator's.
      expect(nft(`list chain ip nat ${chain}`)).toContain(
        `policy ${declaration.includes('drop') ? 'drop' : 'accept'};`,
      );
      expect(count('syncFailed')).toBe(0);
    });

    it('a chain that others made anew elsewhere, with rules of theirs, is left to them', async () => {
      const nft = (text: string) => namespace.run('nft', text);
      nft('delete chain ip nat OUTPUT; add chain ip nat OUTPUT { type nat hook output priority -90; }');
      nft('insert rule ip nat OUTPUT ip daddr 203.0.113.9 accept');
      await until(() => count('syncFailed') > 0);
      expect(events.find((event) => event.kind === 'syncFailed')).toMatchObject({
        error: { code: 'ERR_IPTABLES', message: expect.stringContaining('rules of others are in it') },
      });
      expect(nft('list chain ip nat OUTPUT')).toContain('203.0.113.9');
      nft('delete chain ip nat OUTPUT');
      await until(() => events.at(-1)?.kind === 'syncFinished');
      expect(nft('list chain ip nat OUTPUT')).toMatch(/priority (dstnat|-100);/);
    });
  }

  it('nothing is found where nothing was touched', async () => {
    await delay(500);
    expect(events.map(({ kind }) => kind)).toEqual(['started', 'queued', 'syncStarted', 'syncFinished']);
  });
});

function tablesIn({ path }: TestNamespace): NftTables {
  return new NftTables({
    family: 'IPv4',
    jumps: JUMPS,
    open: () => inNetns(path, () => Nftables.open()),
    watch: (listener) => inNetns(path, () => watchNftables(listener, { withoutOwn: true })),
  });
}
