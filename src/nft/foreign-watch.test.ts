import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import type { NftEvent } from '../netlink/nftables/index.ts';
import { ForeignWatch } from './foreign-watch.ts';

function setup() {
  const clock = new FakeClock();
  let listener: ((event: NftEvent) => void) | undefined;
  let generation = 5;
  let told = 0;
  const watch = new ForeignWatch({
    watch: (given) => {
      listener = given;
      return { close: () => (listener = undefined) };
    },

    tables: [{ kind: 'table', family: 'ip', name: 'nodeplane' }],
    clock,
    debounceMs: 50,
    generation: () => {
      if (Number.isNaN(generation)) throw new Error('EMFILE');
      return generation;
    },
    changed: () => told++,
  });
  const tell = (table: string, own: boolean, family: 'ip' | 'ip6' = 'ip') => {
    listener?.({ kind: 'new', object: { kind: 'chain', family, table, name: 'services' } });
    listener?.({ kind: 'generation', generation, processId: 1, processName: 'nft', own });
  };
  return {
    clock,
    watch,
    tell,
    lose: () => listener?.({ kind: 'overrun' }),
    isOpen: () => listener !== undefined,
    setGeneration: (value: number) => (generation = value),
    told: () => told,
  };
}

describe('ForeignWatch', () => {
  it('tells of others in our table, several changes as one', async () => {
    const { clock, watch, tell, told } = setup();
    watch.start(5);
    tell('nodeplane', false);
    await clock.advance(30);
    tell('nodeplane', false);
    await clock.advance(19);
    expect(told()).toBe(0);
    await clock.advance(1);
    expect(told()).toBe(1);
    await clock.advance(1000);
    expect(told()).toBe(1);
    tell('nodeplane', false);
    await clock.advance(50);
    expect(told()).toBe(2);
  });

  it('tells of somebody who does not cease once a second', async () => {
    const { clock, watch, tell, told } = setup();
    watch.start(5);
    for (let ms = 0; ms < 10_000; ms += 100) {
      tell('nodeplane', false);
      await clock.advance(100);
    }
    expect(told()).toBeGreaterThanOrEqual(10);
    expect(told()).toBeLessThanOrEqual(13);
  });

  it('says nothing about ourselves, other tables, and the other family', async () => {
    const { clock, watch, tell, told } = setup();
    watch.start(5);
    tell('nodeplane', true);
    tell('somebody', false);
    tell('nodeplane', false, 'ip6');
    await clock.advance(1000);
    expect(told()).toBe(0);
  });

  it('compares generations where it may have missed something', async () => {
    const { clock, watch, lose, told, setGeneration } = setup();
    watch.start(5);
    lose();
    await clock.advance(1000);
    expect(told()).toBe(0);
    setGeneration(7);
    watch.committed(7);
    lose();
    await clock.advance(1000);
    expect(told()).toBe(0);
    setGeneration(8);
    lose();
    await clock.advance(1000);
    expect(told()).toBe(1);
  });

  it('notices what happened while it was closed', async () => {
    const { clock, watch, told, isOpen, setGeneration } = setup();
    watch.start(5);
    watch.close();
    expect(isOpen()).toBe(false);
    setGeneration(6);
    watch.start(6);
    await clock.advance(1000);
    expect(told()).toBe(0);
    watch.close();
    setGeneration(8);
    watch.start(7);
    await clock.advance(1000);
    expect(told()).toBe(1);
    watch.close();
    expect(isOpen()).toBe(false);
  });

  it('knows until when nobody else was in our table', () => {
    const { watch, tell, lose, setGeneration } = setup();
    watch.start(5);
    expect(watch.untouchedUntil(5)).toBe(5);
    setGeneration(6);
    tell('somebody', false);
    setGeneration(7);
    tell('nodeplane', true);
    expect(watch.untouchedUntil(5)).toBe(7);
    expect(watch.untouchedUntil(4)).toBeUndefined();
    setGeneration(8);
    tell('nodeplane', false);
    expect(watch.untouchedUntil(7)).toBeUndefined();
    expect(watch.untouchedUntil(8)).toBe(8);
    // Of what came between nothing was heard.
    setGeneration(10);
    tell('somebody', false);
    expect(watch.untouchedUntil(8)).toBeUndefined();
    lose();
    expect(watch.untouchedUntil(10)).toBeUndefined();
    watch.close();
    watch.start(10);
    expect(watch.untouchedUntil(10)).toBe(10);
    watch.close();
    expect(watch.untouchedUntil(10)).toBeUndefined();
  });

  it('takes a kernel that cannot be asked for one that others changed', async () => {
    const { clock, watch, lose, setGeneration, told } = setup();
    watch.start(5);
    setGeneration(Number.NaN);
    lose();
    await clock.advance(50);
    expect(told()).toBe(1);
  });

  it('tells again when it listens anew after its end came before it could tell', async () => {
    const { clock, watch, tell, told } = setup();
    watch.start(5);
    tell('nodeplane', false);
    watch.close();
    await clock.advance(1000);
    expect(told()).toBe(0);
    watch.start(5);
    tell('nodeplane', false);
    await clock.advance(50);
    expect(told()).toBe(1);
  });
});
