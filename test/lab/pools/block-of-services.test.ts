import { afterAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { createNamespace } from '../namespace.ts';
import { createPoolCluster } from './shared-pool.ts';

afterAll(removeAll);

it('a node whose block is in the way of Services takes another one of the pool', async () => {
  const { api, nodes, register, blocksOf } = await createPoolCluster();
  const [one] = nodes;
  register(one);
  const agent = await one.start('--pod-cidrs-from', 'pool', '--pool-cidrs', '10.77.0.0/26', '--pool-block-size', '28');
  await expect.poll(() => blocksOf(one)).toHaveLength(1);
  const [first] = blocksOf(one);
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name: 'kubernetes' } };
  api.apply({ ...object, spec: { cidrs: [first] } });
  await expect.poll(() => blocksOf(one)).toHaveLength(2);
  const second = blocksOf(one).find((cidr) => cidr !== first)!;
  const { json } = await one.call('ADD', createNamespace('pod'));
  expect(json!.ips![0]!.address.slice(0, second.lastIndexOf('.'))).toBe(second.slice(0, second.lastIndexOf('.')));
  expect(json!.ips![0]!.gateway).toBe(second.replace(/(\d+)\/28$/, (_, last) => `${Number(last) + 1}`));

  // All of the pool is.
  api.apply({ ...object, spec: { cidrs: ['10.77.0.0/16'] } });
  const ready = async () => (await one.node.httpGet('http://127.0.0.1:10256/readyz')).body;
  await expect
    .poll(ready)
    .toMatch(/No IPv4 block of pod addresses is free .* and 2 are in the Service range; add a pool/);
  await agent.stop();
  await api.stop();
});
