import { afterEach, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { createFeatureWorld } from './feature-world.ts';

// Routes that another network left on the node, more specific than the subnet of its pods.

const OTHER_LINK = 'ip link add other type veth peer name end; ip link set other up; ip link set end up';

afterEach(removeAll);

it.each([
  ['blackhole 10.244.1.0/26 proto 80', '10.244.1.2', 'nowhere (EINVAL)', ''],
  ['10.244.1.0/26 dev other', '10.244.1.2', 'elsewhere', ''],
  ['unreachable fd00:10:244:1::/120', 'fd00:10:244:1::2', 'nowhere (EHOSTUNREACH)', ' -6'],
])('an ADD tells of "%s"', async (route, ip, where, flag) => {
  const world = createFeatureWorld();
  world.node.namespace.run('sh', '-ec', `${OTHER_LINK}; ip route add ${route}`);
  const outcome = await world.call('ADD', createNamespace('pod'));
  expect(outcome).toMatchObject({ status: 0 });
  expect(outcome.stderr.trim()).toBe(
    `nodeplane-cni: What the node sends to the pod's address ${ip} does not go to "cni0" but ${where}: a route of somebody else is in the way (ip${flag} route show match ${ip}); remove it if its network is gone`,
  );
});

it.each([['bridge'], ['routed']])('an ADD in mode %s has nothing to tell where there is none', async (mode) => {
  const world = createFeatureWorld();
  world.node.namespace.run(
    'sh',
    '-ec',
    `${OTHER_LINK}; ip route add blackhole 10.244.2.0/24; ip route add 10.0.0.0/8 dev other`,
  );
  const outcome = await world.call('ADD', createNamespace('pod'), mode === 'routed' ? { mode } : {});
  expect(outcome).toMatchObject({ status: 0, stderr: '' });
});
