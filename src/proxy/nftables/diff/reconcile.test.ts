import { expect, it } from 'vitest';
import { sampleNode, samplePort } from '../../../../test/samples/sample-plan.ts';
import { atOnce } from '../../../core/index.ts';
import type { SetBody } from '../compile/schema.ts';
import { Layout } from './layout.ts';
import { reconcile } from './reconcile.ts';

it('gives the event loop back between chains and sets, those that are right included', () => {
  const layout = new Layout('IPv4', sampleNode());
  for (let n = 1; n <= 50; n++) {
    const port = samplePort({ name: `shop/web-${n}`, clusterIp: `10.96.0.${n}`, affinitySeconds: 60 });
    atOnce(layout.upsert(port));
  }
  atOnce(layout.place());
  const wanted = atOnce(layout.wanted());
  const present = <T, U>(all: ReadonlyMap<string, T>, make: (name: string, body: T) => U) =>
    new Map([...all].map(([name, body]) => [name, make(name, body)]));
  const inTable = { family: 'ip', table: 'nodeplane' } as const;
  const kernel = {
    sets: present(wanted.sets, (name, body: SetBody) => ({ kind: 'set' as const, ...inTable, name, ...body })),
    chains: present(wanted.chains, (name, { base }) => ({ kind: 'chain' as const, ...inTable, name, base })),
    rules: present(wanted.chains, (chain, { rules }) =>
      rules.map((rule) => ({ kind: 'rule' as const, ...inTable, chain, ...rule })),
    ),
    elements: present(wanted.elements, (_, list) => [...list]),
    indexes: new Map(),
  };
  let steps = 0;
  const work = reconcile(wanted, kernel);
  let step = work.next();
  for (; !step.done; step = work.next()) steps++;
  expect(step.value).toMatchObject({ writeChains: [], removeChains: [] });
  expect(step.value!.addSets.size).toBe(0);
  expect(steps).toBeGreaterThanOrEqual(wanted.sets.size + wanted.chains.size);
});
