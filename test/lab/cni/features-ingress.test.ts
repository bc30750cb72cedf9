import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadReassertion } from '../../../src/cni/index.ts';
import { Nftables } from '../../../src/netlink/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { removeAll } from '../namespace.ts';
import {
  createFeatureWorld,
  elementsOf,
  type FeaturePod,
  type FeatureWorld,
  linesOf,
  mapping,
} from './feature-world.ts';

let world: FeatureWorld;

beforeEach(() => {
  world = createFeatureWorld();
});

afterEach(removeAll);

/** The nth network, which has a bridge of its own. */
function network(n: number, change: object = {}): object {
  const ranges = [[{ subnet: `10.24${n}.1.0/24` }], [{ subnet: `fd00:10:24${n}:1::/64` }]];
  const ipam = { type: 'host-local', ranges, dataDir: world.node.dataDir };
  return { name: `net${n}`, bridge: `cni${n}`, ipMasq: true, ipam, ...change };
}

const SAME_BRIDGE = { ingressPolicy: 'same-bridge' };
const ISOLATED = { ingressPolicy: 'isolated' };

async function serving(name: string, change: object): Promise<FeaturePod> {
  const pod = await world.addPod(name, change);
  await pod.serve({ port: 80 });
  return pod;
}

/** Whether a pod's connections to another arrive: in both families, or in none. */
async function arrives(from: FeaturePod, to: FeaturePod): Promise<boolean> {
  const outcomes = await Promise.all(
    (['IPv4', 'IPv6'] as const).map((family) => from.connect({ ip: to.ip(family), port: 80 })),
  );
  const answered = outcomes.filter(({ kind }) => kind === 'answered').length;
  expect([0, 2]).toContain(answered);
  return answered === 2;
}

describe('ingressPolicy', () => {
  it('"same-bridge" keeps pods of different bridges that have a policy apart, and nobody else', async () => {
    const pod = await serving('pod', network(1, SAME_BRIDGE));
    const neighbour = await serving('neighbour', network(1, SAME_BRIDGE));
    const port = mapping({ hostPort: 8080, containerPort: 80 });
    const foreign = await serving('foreign', network(2, { ...SAME_BRIDGE, ...port }));
    const open = await serving('open', network(2));
    await world.outside.serve({ port: 80 });
    expect(await arrives(pod, neighbour)).toBe(true);
    expect(await arrives(pod, foreign)).toBe(false);
    expect(await arrives(foreign, pod)).toBe(false);
    expect(await arrives(open, pod)).toBe(true);
    expect(await arrives(pod, open)).toBe(true);
    const viaNode = { ip: '192.0.2.1', port: 8080 };
    expect(await pod.connect(viaNode)).toMatchObject({ kind: 'timeout' });
    expect(await world.outside.connect(viaNode)).toMatchObject({ by: 'foreign' });
    expect(await world.nodeHost.connect({ ip: pod.ip(), port: 80 })).toMatchObject({ by: 'pod' });
    expect(await pod.connect({ ip: world.outside.ip(), port: 80 })).toMatchObject({ kind: 'answered' });

    // The elements go with the pod, and its policy with them.
    expect(
      elementsOf(world.table(), foreign.namespace.name).some((text) => text.startsWith('"cni2" . 10.242.1.')),
    ).toBe(true);
    await world.del(pod, network(1));
    expect(elementsOf(world.table(), pod.namespace.name)).toEqual([]);
    const again = await serving('again', network(1));
    expect(await arrives(again, foreign)).toBe(true);
  });

  it('"isolated" keeps them from pods of the same bridge, too, however they try', async () => {
    const pod = await serving('pod', network(1, ISOLATED));
    const port = mapping({ hostPort: 8080, containerPort: 80 });
    const neighbour = await serving('neighbour', network(1, { ...ISOLATED, ...port }));
    const foreign = await serving('foreign', network(2, SAME_BRIDGE));
    await world.nodeHost.serve({ port: 81 });
    for (const [from, to] of [
      [pod, neighbour],
      [foreign, pod],
      [pod, foreign],
    ] as const) {
      expect(await arrives(from, to)).toBe(false);
    }
    // Through the gateway, which would send it back to the bridge.
    pod.namespace.run('ip', 'route', 'add', neighbour.ip(), 'via', '10.241.1.1');
    expect(await pod.connect({ ip: neighbour.ip(), port: 80 })).toMatchObject({ kind: 'timeout' });
    expect(await pod.connect({ ip: '192.0.2.1', port: 8080 })).toMatchObject({ kind: 'timeout' });
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 8080 })).toMatchObject({ by: 'neighbour' });
    expect(await pod.connect({ ip: '10.241.1.1', port: 81 })).toMatchObject({ kind: 'answered' });
  });

  it('"isolated" is for pods without a bridge as well, "same-bridge" is refused for them', async () => {
    const routed = (policy: object) => ({ mode: 'routed', ...policy });
    const [pod, other] = [await serving('pod', routed(ISOLATED)), await serving('other', routed(ISOLATED))];
    expect(await arrives(pod, other)).toBe(false);
    expect(await world.nodeHost.connect({ ip: pod.ip(), port: 80 })).toMatchObject({ by: 'pod' });
    const refused = await world.call('ADD', pod.namespace, routed(SAME_BRIDGE), { ifname: 'eth1' });
    expect(refused.json).toMatchObject({ code: 2, msg: expect.stringContaining('"ingressPolicy"') });
  });

  it('is checked, and comes back after a flush of the ruleset', async () => {
    const { featuresOf, reassertFeatures } = await loadReassertion();
    const config = network(1, SAME_BRIDGE);
    const pod = await serving('pod', config);
    const foreign = await serving('foreign', network(2, SAME_BRIDGE));
    const check = async () =>
      (await world.call('CHECK', pod.namespace, { ...config, prevResult: pod.result })).json?.msg;
    expect(await check()).toBeUndefined();
    const ruleset = inNetns(world.node.namespace.path, () => Nftables.open());
    try {
      const table = linesOf(world.table());
      world.node.namespace.run('nft', 'flush', 'set', 'inet', 'nodeplane-cni', 'ingress-policy-ipv4');
      expect(await check()).toContain('The ingress policy "same-bridge" is not in force');
      world.node.namespace.run('nft', 'flush', 'ruleset');
      expect(await check()).toContain('Rules of nftables table "inet nodeplane-cni" are missing or were changed');
      expect(await arrives(pod, foreign)).toBe(true);
      expect(reassertFeatures(ruleset, featuresOf(world.wanted())).structureRepaired).toBe(true);
      expect(linesOf(world.table())).toEqual(table);
      expect(await arrives(pod, foreign)).toBe(false);
      expect(await check()).toBeUndefined();
    } finally {
      ruleset.close();
    }
  });
});
