import { afterAll, expect, it } from 'vitest';
import { isUnsupported } from '../../../src/core/index.ts';
import { closing, Netlink } from '../../../src/netlink/index.ts';
import { newWireguardLink } from '../../../src/netlink/wireguard/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { createCluster } from './cluster.ts';

afterAll(removeAll);

function hasWireguard(): boolean {
  return closing(inNetns(createNamespace('probe').path, Netlink.openRoute), (netlink) => {
    try {
      netlink.execute(newWireguardLink({ name: 'wg0' }));
      return true;
    } catch (error) {
      if (isUnsupported(error)) return false;
      throw error;
    }
  });
}

it.skipIf(hasWireguard())('without WireGuard in the kernel the agent says so, and all else goes on', async () => {
  const cluster = await createCluster();
  const keyFile = `${cluster.lab.folder}/wireguard.key`;
  const [agent] = await cluster.start('--routes', 'wireguard', '--routes-wireguard-key-file', keyFile);
  const words = 'this kernel does not know them; load the module wireguard, or choose another --routes';
  await expect.poll(() => JSON.stringify(agent!.logs())).toContain(`Cannot make a WireGuard device: ${words}`);
  expect(await agent!.metrics()).toMatch(/^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{.*\} [\d.e+]+$/m);
  await cluster.stop();
});
