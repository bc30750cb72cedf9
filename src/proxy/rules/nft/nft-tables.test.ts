import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeNftables } from '../../../../test/fakes/fake-nftables.ts';
import type { NftChain, NftObject, NftRule } from '../../../netlink/nftables/index.ts';
import { NftTables } from './nft-tables.ts';

let nft: FakeNftables;
let tables: NftTables;

const name = (table: string, family: 'ip' | 'ip6' = 'ip') => ({ kind: 'table', family, name: table }) as const;
/** As another program does; it is heard of a moment later. */
async function others(table: string, family: 'ip' | 'ip6' = 'ip'): Promise<void> {
  const chain = { kind: 'chain', family, table, name: `chain-${nft.commits.length}` } as const;
  nft.commitAsOther({ operation: 'add', object: name(table, family) }, { operation: 'add', object: chain });
  await delay(0);
}
/** They are read, and found right. */
const read = () => tables.foundRight(tables.startReading());

beforeEach(() => {
  nft = new FakeNftables();
  nft.commit([{ operation: 'add', object: name('nat') }]);
  tables = new NftTables({
    family: 'IPv4',
    jumps: ['filter', 'nat'].map((table) => ({ table, chain: 'OUTPUT', rule: '-j KUBE-SERVICES' })),
    open: () => nft,
    watch: (listener) => nft.watch(listener),
  });
});

describe('tables that were read need not be read again', () => {
  it('until somebody writes to them', async () => {
    expect(tables.isRight()).toBe(false);
    read();
    expect(tables.isRight()).toBe(true);
    await others('nat', 'ip6');
    await others('docker');
    expect(tables.isRight()).toBe(true);
    await others('nat');
    expect(tables.isRight()).toBe(false);
    await others('docker');
    expect(tables.isRight()).toBe(false);
    read();
    expect(tables.isRight()).toBe(true);
  });

  it('unless somebody wrote to them meanwhile', async () => {
    const generation = tables.startReading();
    await others('nat');
    tables.foundRight(generation);
    expect(tables.isRight()).toBe(false);
  });

  it('after what we write, unless that fails or somebody else writes meanwhile', async () => {
    await tables.writing(1, 1, () => others('nat'));
    expect(tables.isRight()).toBe(false);
    read();
    await tables.writing(2, 2, async () => {
      await others('filter');
      await others('nat');
    });
    expect(tables.isRight()).toBe(true);
    await others('docker');
    expect(tables.isRight()).toBe(true);
    const failed = tables.writing(1, 1, async () => {
      throw new Error('refused');
    });
    await expect(failed).rejects.toThrow('refused');
    expect(tables.isRight()).toBe(false);
    read();
    await tables.writing(1, 1, async () => {
      await others('nat');
      await others('docker');
    });
    expect(tables.isRight()).toBe(false);
  });
});

it('has nobody of this process listen to a large restore alone', async () => {
  const unheard: number[] = [];
  nft.byProgram = async (transactions, run) => {
    unheard.push(transactions);
    await run();
  };
  await tables.writing(1, 12, () => others('nat'));
  expect(unheard).toEqual([]);
  await tables.writing(2, 20_000, () => others('nat'));
  expect(unheard).toEqual([2]);
});

it('listens from a generation on', async () => {
  const told: string[] = [];
  tables = new NftTables({
    family: 'IPv4',
    jumps: [{ table: 'nat', chain: 'OUTPUT', rule: '-j KUBE-SERVICES' }],
    open: () => nft,
    watch: (listener) => nft.watch(listener),
    jumpsGone: () => told.push('gone'),
  });
  const since = tables.generation();
  await others('docker');
  await delay(100);
  expect(told).toEqual([]);
  tables.listen(since);
  await expect.poll(() => told).toEqual(['gone']);
  tables.close();
});

it('tells at once of a flush, and of nothing else that others do', async () => {
  const jump = {
    table: 'nat',
    chain: 'OUTPUT',
    rule: '-m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
  };
  let told = 0;
  tables = new NftTables({
    family: 'IPv4',
    jumps: [jump],
    open: () => nft,
    watch: (listener) => nft.watch(listener),
    jumpsGone: () => told++,
  });
  const chainOf = (called: string): NftChain => ({ kind: 'chain', family: 'ip', table: 'nat', name: called });
  const to = (called: string): NftRule => ({
    kind: 'rule',
    ...{ family: 'ip', table: 'nat', chain: 'OUTPUT' },
    expressions: [{ kind: 'verdict', verdict: { kind: 'jump', chain: called } }],
  });
  const add = (...objects: NftObject[]) => objects.map((object) => ({ operation: 'add', object }) as const);
  const chains = ['OUTPUT', 'KUBE-SERVICES', 'THEIRS'].map(chainOf);
  await tables.writing(1, 1, async () => nft.commitAsOther(...add(...chains, to('KUBE-SERVICES'))));
  nft.commitAsOther(...add(to('THEIRS')));
  await delay(100);
  expect(told).toBe(0);
  nft.commitAsOther({ operation: 'flush', object: chainOf('OUTPUT') }, ...add(to('THEIRS')));
  await expect.poll(() => told).toBe(1);
  nft.commitAsOther({ operation: 'delete', object: name('nat') });
  await expect.poll(() => told).toBe(2);
  // In the shadow of what we write ourselves: nobody listens then.
  const rules = add(name('nat'), ...chains, to('KUBE-SERVICES'));
  await tables.writing(1, 1, async () => nft.commitAsOther(...rules));
  expect(told).toBe(2);
  await tables.writing(1, 1, async () => {
    nft.commitAsOther(...add(chainOf('KUBE-SVC-1')));
    nft.commitAsOther({ operation: 'flush', object: chainOf('OUTPUT') });
  });
  expect(told).toBe(3);
  // Just before it.
  await tables.writing(1, 1, async () => nft.commitAsOther(...add(to('KUBE-SERVICES'))));
  const right = tables.startReading();
  tables.foundRight(right);
  nft.commitAsOther({ operation: 'flush', object: chainOf('OUTPUT') });
  await tables.writing(1, 1, async () => nft.commitAsOther(...add(chainOf('KUBE-SVC-2'))));
  expect(told).toBe(4);
  tables.close();
});
