import { afterAll, describe, expect, it } from 'vitest';
import { createFeatureWorld, mapping } from '../lab/cni/feature-world.ts';
import { type HeldConnection, type Host, removeAll, type Target } from '../lab/lab.ts';

// Here because only the VM's kernel has SCTP sockets: mapped ports of the CNI plugin. Services: test/dataplane/scenario.ts.

const FAMILIES = ['IPv4', 'IPv6'] as const;
const MAPPING = mapping({ hostPort: 3868, containerPort: 3869, protocol: 'sctp' });
/** SCTP's clients like to come from one port, for ever. */
const SOURCE_PORT = 3868;

afterAll(removeAll);

describe('a mapped SCTP port', () => {
  it('leads to its pod, which sees the client, and clients of one port no longer than it is there', async () => {
    const world = createFeatureWorld();
    const { outside, node, nodeHost } = world;
    const targets = FAMILIES.map((family) => {
      return { ip: nodeHost.ip(family), port: 3868, protocol: 'SCTP', source: outside.ip(family) } as const;
    });
    const tracked = (pod: Host) =>
      FAMILIES.map((family) =>
        node.namespace.run('conntrack', '-L', '-f', family.toLowerCase(), '-p', 'sctp', '-r', pod.ip(family)),
      );
    const connect = (target: Target) => outside.connect(target, { sourcePort: SOURCE_PORT });
    const held: HeldConnection[] = [];
    const pod = await world.addPod('web', MAPPING);
    await pod.serve({ port: 3869, protocol: 'SCTP' });
    for (const target of targets) {
      expect(await connect(target)).toMatchObject({ kind: 'answered', by: 'web', source: target.source });
      expect(await pod.connect(target)).toMatchObject({ kind: 'answered', by: 'web' });
      held.push(await outside.hold(target));
    }
    for (const { outcome } of held) expect(outcome).toMatchObject({ kind: 'answered', by: 'web' });
    for (const flows of tracked(pod)) expect(flows).toContain('ESTABLISHED');
    await world.del(pod);
    expect(tracked(pod)).toEqual(['', '']);
    for (const target of targets) expect(await connect(target)).toMatchObject({ kind: 'refused' });
    for (const connection of held) await connection.close();
  });
});
