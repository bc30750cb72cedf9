import { afterAll, expect, it } from 'vitest';
import { isUnsupported } from '../../../src/core/index.ts';
import { closing, Netlink } from '../../../src/netlink/index.ts';
import { newWireguardLink } from '../../../src/netlink/wireguard/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { addRoute, type Host, type LabNode, type Pod } from '../lab.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { createCluster, FAMILIES, POD_PORT } from './cluster.ts';

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

/** Packets to pods of other nodes that leave by the wire. */
function watchWire({ namespace }: LabNode): () => number {
  namespace.run(
    ...['nft', 'add table inet seen; add chain inet seen out { type filter hook postrouting priority 300; }; '],
    ...['add rule inet seen out oifname eth0 ip daddr 10.244.0.0/16 counter; '],
    ...['add rule inet seen out oifname eth0 ip6 daddr fd00:10:244::/48 counter'],
  );
  return () =>
    [...namespace.run('nft', 'list table inet seen').matchAll(/packets (\d+)/g)].reduce(
      (sum, [, packets]) => sum + Number(packets),
      0,
    );
}

it.skipIf(hasWireguard())('what is to be encrypted and cannot be leaves by no other way; all else does', async () => {
  const cluster = await createCluster();
  const { lab, nodes, pods } = cluster;
  const [one, two] = nodes;
  const [pod1, pod2, pod3] = pods;
  const neighbour = one.addPod('pod-1b');
  await neighbour.serve({ port: POD_PORT });
  await two.serve({ port: POD_PORT });
  for (const index of [0, 1]) {
    addRoute(one, two.podCidrs[index]!, two);
    addRoute(two, one.podCidrs[index]!, one);
  }
  const left = watchWire(one);
  const leaves = async (from: Host, target: string) => {
    const before = left();
    await from.connect({ ip: target, port: POD_PORT }, { timeoutMs: 300 });
    return left() > before;
  };
  const nobody = ['10.244.77.7', 'fd00:10:244:77::7'];
  const elsewhere = [...FAMILIES.map((family) => pod3.ip(family)), ...nobody];
  for (const target of elsewhere) expect(await leaves(pod1, target)).toBe(true);

  const flags = (mode: string) => [
    ...['--routes', mode, '--routes-tunnel', 'wireguard', '--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48'],
    ...['--routes-wireguard-key-file', `${lab.folder}/${mode}.key`],
  ];
  const answered = (from: Pod, to: Host) =>
    Promise.all(
      FAMILIES.map(async (family) => {
        const outcome = await from.connect({ ip: to.ip(family), port: POD_PORT }, { timeoutMs: 1000 });
        return outcome.kind === 'answered';
      }),
    );
  await cluster.start(...flags('auto'));
  for (const target of elsewhere) {
    await expect.poll(() => leaves(pod1, target)).toBe(false);
    expect(await leaves(one, target)).toBe(false);
  }
  for (const to of [neighbour, two, pod2]) expect(await answered(pod1, to)).toEqual([true, true]);

  const agent = await cluster.restart(one, { by: 'SIGTERM', flags: flags('wireguard') });
  for (const family of FAMILIES) await expect.poll(() => leaves(pod1, pod2.ip(family))).toBe(false);
  for (const to of [neighbour, two]) expect(await answered(pod1, to)).toEqual([true, true]);
  for (const family of FAMILIES) {
    const dropped = new RegExp(
      `^nodeplane_routes_unencrypted_dropped_packets_total\\{ip_family="${family}"\\} [1-9]`,
      'm',
    );
    expect(await agent.metrics()).toMatch(dropped);
  }
  await cluster.stop();
});
