import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  hostOrder32,
  isStaleGeneration,
  jump,
  Nftables,
  type NftChange,
  NftCommitError,
  type NftElement,
} from '../../../src/netlink/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { FORMS_SETUP } from '../../fakes/nftables-forms.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { add, addElements, bytes, set, T, TABLE } from './nftables-objects.ts';

let namespace: TestNamespace;
let nft: Nftables;
/** Another program's view: nft of the system. */
const listing = () => namespace.run('nft', '-a', 'list', 'ruleset');

beforeAll(() => {
  namespace = createNamespace('nftables-tx');
  nft = inNetns(namespace.path, () => Nftables.open());
});
beforeEach(() => {
  namespace.run('nft', FORMS_SETUP);
});
afterEach(() => {
  namespace.run('nft', 'flush ruleset');
});
afterAll(() => {
  nft.close();
  removeAll();
});

describe('a transaction', () => {
  const refused = (changes: readonly NftChange[]): NftCommitError => {
    try {
      nft.commit(changes);
    } catch (error) {
      if (error instanceof NftCommitError) return error;
      throw error;
    }
    throw new Error('it was not refused');
  };
  const chain = (name: string) => add({ kind: 'chain', ...T, name });

  it('is done whole or not at all, and says which change was refused', () => {
    const before = listing();
    const changes = [
      chain('a'),
      addElements('s4', { key: bytes(1, 1, 1, 1) }),
      add({ kind: 'rule', ...T, chain: 'a', expressions: [jump('missing')] }),
      chain('b'),
    ];
    const error = refused(changes);
    expect(error).toMatchObject({ code: 'ERR_NETLINK_ACK', errnoName: 'ENOENT', changeIndex: 2, change: changes[2] });
    expect(error.message).toMatch(/^nf_tables add rule of chain "a" of table ip "t": .*ENOENT/);
    expect(listing()).toBe(before);
  });

  it('says which of many elements was refused, where the kernel does', () => {
    const key = (i: number) => bytes(10, 0, i >> 8, i);
    nft.commit([addElements('s4', { key: key(4000) })]);
    const elements = Array.from({ length: 5000 }, (_, i) => ({ key: key(i) }));
    const error = refused([{ operation: 'create', object: { kind: 'elements', ...T, set: 's4', elements } }]);
    expect(error).toMatchObject({ errnoName: 'EEXIST', changeIndex: 0 });
    expect([undefined, 4000]).toContain(error.elementIndex);
    expect(nft.listElements(set('s4'))).toHaveLength(1);
  });

  it('is only asked about: nothing is made, and what would be refused is named', async () => {
    const [before, generation] = [listing(), nft.generation()];
    const changes = [
      add({ kind: 'table', family: 'ip', name: 'other' }),
      add({
        kind: 'chain',
        family: 'ip',
        table: 'other',
        name: 'base',
        base: { type: 'nat', hook: 'prerouting', priority: -100 },
      }),
      chain('a'),
      chain('b'),
      add({ kind: 'rule', ...T, chain: 'in', expressions: [jump('a')] }),
      add({ kind: 'rule', ...T, chain: 'a', expressions: [jump('b')] }),
    ];
    expect(nft.commit(changes, { checkOnly: true }).generation).toBeUndefined();
    expect((await nft.commitAsync(changes, { checkOnly: true })).generation).toBeUndefined();
    const missing = add({ kind: 'rule', ...T, chain: 'a', expressions: [jump('missing')] });
    const error = await nft.commitAsync([...changes, missing], { checkOnly: true }).catch((reason) => reason);
    expect(error).toMatchObject({ errnoName: 'ENOENT', changeIndex: 6 });
    // A loop, which the kernel finds only when it looks at the whole table.
    const loop = add({ kind: 'rule', ...T, chain: 'b', expressions: [jump('a')] });
    const looped = await nft.commitAsync([...changes, loop], { checkOnly: true }).catch((reason) => reason);
    expect(looped).toBeInstanceOf(NftCommitError);
    expect(listing()).toBe(before);
    expect(nft.generation()).toBe(generation);
    expect(nft.commit(changes).generation).toBe(generation + 1);
  });

  it('tells what is still in use and what exists', () => {
    nft.commit([chain('a'), add({ kind: 'rule', ...T, chain: 'in', expressions: [jump('a')] })]);
    expect(refused([{ operation: 'delete', object: { kind: 'chain', ...T, name: 'a' } }]).errnoName).toBe('EBUSY');
    expect(refused([{ operation: 'create', object: { kind: 'chain', ...T, name: 'a' } }]).errnoName).toBe('EEXIST');
    expect(refused([{ operation: 'delete', object: set('missing') }]).errnoName).toBe('ENOENT');
  });

  it('is refused when the ruleset is not of the expected generation, and names the one it made', async () => {
    const generation = nft.generation();
    const report = nft.commit([chain('a')], { expectGeneration: generation });
    expect(report.generation).toBe(nft.generation());
    expect(nft.commit([chain('b')]).generation).toBe(nft.generation());
    expect((await nft.commitAsync([chain('c')])).generation).toBe(nft.generation());
    const stale = await nft.commitAsync([chain('d')], { expectGeneration: generation }).catch((error) => error);
    expect(isStaleGeneration(stale)).toBe(true);
    expect(nft.listChains(TABLE).map(({ name }) => name)).not.toContain('d');
    expect(nft.commit([])).toMatchObject({ messages: 0, generation: undefined });
  });

  it('holds 10,000 services of 10 endpoints each, and is read back, while the event loop runs', async () => {
    const services: NftElement[] = [];
    const endpoints: NftElement[] = [];
    for (let i = 0; i < 10_000; i++) {
      const key = Buffer.from([10, 96, i >> 8, i & 255, 6, 0, 0, 0, 0, 80, 0, 0]);
      services.push({ key, verdict: { kind: 'goto', chain: 'lb-10' }, comment: `shop-${i % 50}/web-${i}:http` });
      for (let j = 0; j < 10; j++) {
        endpoints.push({
          key: Buffer.concat([key, hostOrder32(j)]),
          data: bytes(10, 128 + j, i >> 8, i, 0x1f, 0x90, 0, 0),
        });
      }
    }
    const concatenation = ['ipv4_addr', 'inet_proto', 'inet_service'] as const;
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const report = await nft.commitAsync([
      chain('lb-10'),
      add({ ...set('services-big'), key: concatenation, data: 'verdict' }),
      add({ ...set('endpoints-big'), key: [...concatenation, 'mark'], data: ['ipv4_addr', 'inet_service'] }),
      addElements('services-big', ...services),
      addElements('endpoints-big', ...endpoints),
    ]);
    expect(turns).toBeGreaterThan(10);
    turns = 0;
    const listed = await nft.listElementsAsync(set('endpoints-big'));
    expect(turns).toBeGreaterThan(10);
    clearInterval(timer);
    expect(report.messages).toBeLessThan(120);
    const text = ({ key, data }: NftElement) => Buffer.concat([key, data!]).toString('hex');
    expect(new Set(listed.map(text))).toEqual(new Set(endpoints.map(text)));
    expect(nft.listElements(set('services-big'))).toHaveLength(10_000);
  });
});
