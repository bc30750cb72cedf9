import { expect, it } from 'vitest';
import { link, look } from '../../../test/fakes/preflight-world.ts';
import { DEVICE_ALIAS } from '../../routes/index.ts';

it.each([
  ['ok', 'eth0 1500', DEVICE_ALIAS],
  ['warning', 'nodeplane-v4 1480: larger than the 1450', ''],
])('links.mtu: of a tunnel the agent keeps the MTU if it is ours: %s', async (state, message, alias) => {
  const tunnel = link('nodeplane-v4', { kind: 'vxlan', alias, mtu: 1480 });
  const finding = await look('links.mtu', { flags: ['--routes=vxlan'], node: { links: () => [tunnel] } });
  expect(finding).toMatchObject({ state, message: expect.stringContaining(message) });
});
