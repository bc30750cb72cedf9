import { afterEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { createFeatureWorld, elementsOf, type FeatureWorld, mapping } from './feature-world.ts';

afterEach(removeAll);

const ALL = {
  ipMasq: true,
  firewall: true,
  macspoofchk: true,
  egressRate: 1e6,
  egressBurst: 1e6,
  ...mapping({ hostPort: 8080, containerPort: 80 }, { hostPort: 8081, containerPort: 80, hostIP: '192.0.2.1' }),
};

/** What is left of a pod's features on the node. */
function leftovers({ node, table }: FeatureWorld, container: string) {
  return {
    elements: elementsOf(table(), container),
    devices: node.namespace.run('ip', '-br', 'link').match(/ifb\w+/g) ?? [],
    firewall: node.namespace.run('iptables-nft', '-S').match(/NODEPLANE.*/g) ?? [],
  };
}

describe.each(['ports', 'masquerade', 'firewall', 'macspoofchk', 'ifb', 'features'])(
  'an ADD killed after "%s"',
  (step) => {
    it('leaves what DEL removes and is in the way of nobody', async () => {
      const world = createFeatureWorld();
      world.node.namespace.run('iptables-nft', '-P', 'FORWARD', 'DROP');
      const pod = createNamespace('pod');
      const killed = await world.call('ADD', pod, ALL, { env: { NODEPLANE_CNI_FAILPOINT: step } });
      expect(killed).toMatchObject({ status: null, stdout: '' });
      expect(leftovers(world, pod.name)).not.toEqual({ elements: [], devices: [], firewall: [] });
      await world.del(pod);
      expect(leftovers(world, pod.name)).toEqual({ elements: [], devices: [], firewall: [] });

      const again = await world.addPod('again', ALL);
      await again.serve({ port: 80 });
      expect(await world.outside.connect({ ip: '192.0.2.1', port: 8081 })).toMatchObject({ by: 'again' });
      await world.del(again);
      expect(leftovers(world, again.namespace.name)).toEqual({ elements: [], devices: [], firewall: [] });
    });
  },
);
