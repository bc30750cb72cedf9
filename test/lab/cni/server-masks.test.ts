import { afterEach, expect, it } from 'vitest';
import { execIn } from '../iptables/fixtures.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { reaches } from './fixture.ts';
import { createServedNode } from './served-node.ts';

afterEach(removeAll);

// A Node that is registered again after --node-cidr-mask-size was changed has a part of its former range, or more than that.
it.each([
  ['upper part of its range', ['10.244.1.0/24', 'fd00:10:244:1::/64'], ['10.244.1.128/25', 'fd00:10:244:1:8000::/65']],
  ['lower part of its range', ['10.244.1.0/24', 'fd00:10:244:1::/64'], ['10.244.1.0/25', 'fd00:10:244:1::/64']],
  [
    'range around its own that begins before it',
    ['10.244.1.128/25', 'fd00:10:244:1:8000::/65'],
    ['10.244.1.0/24', 'fd00:10:244:1::/64'],
  ],
  ['range around its own', ['10.244.1.0/25', 'fd00:10:244:1::/64'], ['10.244.1.0/24', 'fd00:10:244:1::/64']],
])('the node gets the %s: former pods stay reached, and new ones are made', async (_, before, after) => {
  const served = createServedNode();
  served.setPodCidrs(before);
  const agent = await served.startAgent();
  const old = createNamespace('old');
  // Beyond the lower part, where there is one.
  const env = { CNI_ARGS: `IP=${before[0] === '10.244.1.0/25' ? '10.244.1.100' : '10.244.1.200'}` };
  const added = await served.call('ADD', old, { env });
  expect(added).toMatchObject({ status: 0 });
  const ips = added.json!.ips!.map(({ address }) => address.replace(/\/.*/, ''));
  const areReached = () => ips.map((ip) => reaches(served.node.namespace, ip));
  const ranges = () => agent.logs().filter(({ msg }) => msg === 'Ranges of new pods');
  expect(areReached()).toEqual([true, true]);

  served.setPodCidrs(after);
  await expect.poll(() => ranges().at(-1)).toMatchObject({ ranges: after });
  expect(areReached()).toEqual([true, true]);
  for (const name of ['young', 'younger']) {
    const { json } = await served.call('ADD', createNamespace(name));
    const masks = after.map((cidr) => expect.stringContaining(cidr.slice(cidr.indexOf('/'))));
    expect(json).toMatchObject({ ips: masks.map((address) => ({ address })) });
    expect(areReached()).toEqual([true, true]);
    // What differs the agent would mend.
    const diff = await execIn(served.node.namespace)(builtProgram('nodeplane'), ['diff']);
    expect(diff.stdout).toContain('interfaces of pods: equal');
  }
  expect(await served.call('STATUS')).toMatchObject({ status: 0 });
  expect(await served.call('DEL', old)).toMatchObject({ status: 0 });
});
