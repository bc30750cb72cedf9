import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadReassertion, loadRemoval } from '../../../src/cni/index.ts';
import { Nftables } from '../../../src/netlink/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { createFeatureWorld, elementsOf, type FeaturePod, type FeatureWorld, mapping } from './feature-world.ts';

const CHECKED = { macspoofchk: true };
const OTHER_MAC = '0a:00:00:00:00:99';
const TABLE = 'bridge nodeplane-cni'.split(' ');

let world: FeatureWorld;

beforeEach(() => {
  world = createFeatureWorld();
});

afterEach(removeAll);

function setMac(pod: FeaturePod, mac: string): void {
  pod.namespace.run('ip', 'link', 'set', 'eth0', 'address', mac);
}

function macOf(pod: FeaturePod): string {
  return pod.result.interfaces!.find(({ sandbox }) => sandbox)!.mac;
}

/** How connections of a pod to the node and to another pod end, in both families. */
async function tries(pod: FeaturePod, other: FeaturePod): Promise<Set<string>> {
  const targets = (['IPv4', 'IPv6'] as const).flatMap((family) => [world.nodeHost.ip(family), other.ip(family)]);
  const outcomes = await Promise.all(targets.map((ip) => pod.connect({ ip, port: 80 })));
  return new Set(outcomes.map(({ kind }) => kind));
}

const forget = (...pods: FeaturePod[]) => {
  for (const { namespace } of [...pods, world.nodeHost]) namespace.run('ip', 'neigh', 'flush', 'all');
};

describe('macspoofchk', () => {
  it('lets nothing through that has another MAC than the pod’s, and only of pods that ask for it', async () => {
    await world.nodeHost.serve({ port: 80 });
    const other = await world.addPod('other');
    await other.serve({ port: 80 });
    const pod = await world.addPod('pod', CHECKED);
    expect(await tries(pod, other)).toEqual(new Set(['answered']));
    setMac(pod, OTHER_MAC);
    forget(pod, other);
    expect(await tries(pod, other)).not.toContain('answered');
    // Nor does its neighbour's MAC do.
    setMac(pod, macOf(other));
    expect(await tries(pod, other)).not.toContain('answered');
    setMac(pod, macOf(pod));
    forget(pod, other);
    expect(await tries(pod, other)).toEqual(new Set(['answered']));

    setMac(other, OTHER_MAC);
    await pod.serve({ port: 80 });
    forget(pod, other);
    expect(await tries(other, pod)).toEqual(new Set(['answered']));
  });

  it('is no obstacle to a pod that comes back to itself, unless it has another MAC', async () => {
    const pod = await world.addPod('pod', {
      ...CHECKED,
      hairpinMode: true,
      ...mapping({ hostPort: 8080, containerPort: 80 }),
    });
    await pod.serve({ port: 80 });
    const itself = { ip: world.nodeHost.ip(), port: 8080 };
    expect(await pod.connect(itself)).toMatchObject({ kind: 'answered', by: 'pod' });
    setMac(pod, OTHER_MAC);
    forget(pod);
    expect(await pod.connect(itself)).not.toMatchObject({ kind: 'answered' });
  });

  it('is two elements of a table that nft lists, and leaves none when the pod goes', async () => {
    const pod = await world.addPod('pod', CHECKED);
    const stays = await world.addPod('stays', CHECKED);
    const { name } = pod.namespace;
    const [link] = pod.result.interfaces!.map((each) => each.name).filter((each) => each.startsWith('veth'));
    const comment = `comment "${link} net/${name}/eth0"`;
    expect(elementsOf(world.table(), name)).toEqual([`"${link}" ${comment}`, `"${link}" . ${macOf(pod)} ${comment}`]);
    expect(world.table()).toMatch(
      /iifname @mac-checked iifname \. ether saddr != @macs counter packets \d+ bytes \d+ drop/,
    );
    await world.del(pod);
    expect(elementsOf(world.table(), name)).toEqual([]);
    expect(elementsOf(world.table(), stays.namespace.name)).toHaveLength(2);
    // Without configuration, result and namespace, as after a crash of the runtime.
    await stays.remove();
    await world.del(stays);
    expect(world.table()).not.toContain('veth');
  });

  it('is removed by GC with what else belongs to a pod that is gone', async () => {
    const [pod, stays] = [await world.addPod('pod', CHECKED), await world.addPod('stays', CHECKED)];
    const valid = [{ containerID: stays.namespace.name, ifname: 'eth0' }];
    const { status } = await world.call('GC', pod.namespace, { 'cni.dev/valid-attachments': valid });
    expect(status).toBe(0);
    expect(elementsOf(world.table(), pod.namespace.name)).toEqual([]);
    expect(elementsOf(world.table(), stays.namespace.name)).toHaveLength(2);
  });

  it('allows one MAC, also when an attempt was made before with another', async () => {
    const namespace = createNamespace('pod');
    const withMac = (mac: string) => ({ ...CHECKED, runtimeConfig: { mac } });
    const killed = await world.call('ADD', namespace, withMac(OTHER_MAC), {
      env: { NODEPLANE_CNI_FAILPOINT: 'macspoofchk' },
    });
    expect(killed.status).toBe(null);
    expect(elementsOf(world.table(), namespace.name)).toHaveLength(2);
    // What is left of the attempt but for its link, as if the pod's namespace had been made anew.
    const link = /veth[0-9a-f]{11}/.exec(world.table())![0];
    world.node.namespace.run('ip', 'link', 'del', link);
    const mac = '0a:00:00:00:00:42';
    expect(await world.call('ADD', namespace, withMac(mac))).toMatchObject({ status: 0 });
    const macs = elementsOf(world.table(), namespace.name).filter((text) => text.includes(' . '));
    expect(macs).toEqual([expect.stringContaining(mac)]);
  });

  it('is checked, and comes back after a flush of the ruleset', async () => {
    const { featuresOf, reassertFeatures } = await loadReassertion();
    const pod = await world.addPod('pod', CHECKED);
    const other = await world.addPod('other');
    await world.nodeHost.serve({ port: 80 });
    await other.serve({ port: 80 });
    const check = () => world.call('CHECK', pod.namespace, { ...CHECKED, prevResult: pod.result });
    expect(await check()).toMatchObject({ status: 0 });
    const ruleset = inNetns(world.node.namespace.path, () => Nftables.open());
    try {
      const table = world.table();
      world.node.namespace.run('nft', 'flush', 'set', ...TABLE, 'macs');
      expect((await check()).json?.msg).toMatch(/Frames of "veth[0-9a-f]{11}" are not held to the MAC [0-9a-f:]{17}$/);
      world.node.namespace.run('nft', 'flush', 'ruleset');
      expect((await check()).json?.msg).toContain(
        'Rules of nftables table "bridge nodeplane-cni" are missing or were changed',
      );
      expect(reassertFeatures(ruleset, featuresOf(world.wanted()))).toMatchObject({
        structureRepaired: true,
        elementsAdded: 2,
      });
      expect(world.table().replace(/counter .* drop/, '')).toBe(table.replace(/counter .* drop/, ''));
      expect(await check()).toMatchObject({ status: 0 });
      setMac(pod, OTHER_MAC);
      forget(pod, other);
      expect(await tries(pod, other)).not.toContain('answered');
      const { removeFeatures } = await loadRemoval();
      expect(removeFeatures(ruleset)).toEqual(['nftables table "bridge nodeplane-cni": removed']);
      expect(world.table()).toBe('');
    } finally {
      ruleset.close();
    }
  });
});
