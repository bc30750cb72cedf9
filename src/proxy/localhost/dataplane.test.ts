import { describe, expect, it } from 'vitest';
import { FakeDataplane } from '../../../test/fakes/fake-dataplane.ts';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { sampleNode, samplePlan, samplePort } from '../../../test/samples/sample-plan.ts';
import type { ServicePortPlan } from '../index.ts';
import { LocalhostDataplane, type LocalhostState } from './dataplane.ts';
import { LocalhostRules } from './rules.ts';

const EINVAL = 22;

function port(name: string, nodePort: number, protocol: 'TCP' | 'UDP' | 'SCTP' = 'TCP'): ServicePortPlan {
  return samplePort({ name: `shop/${name}`, clusterIp: '10.96.0.9', nodePort, protocol, local: ['10.1.0.2:8080'] });
}

const planOf = (ports: readonly ServicePortPlan[], loopbackNodePorts = true) =>
  samplePlan('IPv4', sampleNode({ loopbackNodePorts }), ports);

function setUp() {
  const nft = new FakeNftables();
  const states: LocalhostState[] = [];
  let standIns = 0;
  const standIn = {
    isThere: () => standIns === 1,
    add: () => {
      standIns = 1;
    },
    remove: () => {
      standIns = 0;
    },
  };
  const inner = new FakeDataplane();
  const dataplane = new LocalhostDataplane({
    dataplane: inner,
    protocols: ['TCP', 'UDP'],
    rules: new LocalhostRules('IPv4', { open: () => nft, standIn }),
    told: (state) => states.push(state),
  });
  return { nft, states, inner, dataplane, standIns: () => standIns };
}

/** The elements of the set, as `nft` prints them. */
function nodePorts(nft: FakeNftables): string[] {
  return [...nft.toString().matchAll(/(?:tcp|udp) \. \d+/g)].map(([text]) => text).sort();
}

describe('LocalhostDataplane', () => {
  it('has the NodePorts of the plan, and no others, after a full sync and after changes', async () => {
    const { nft, dataplane, states, standIns } = setUp();
    const [web, dns, plain] = [port('web', 30080), port('dns', 30053, 'UDP'), port('plain', 0)];
    // What this mode cannot serve at localhost is left out.
    const calls = port('calls', 30090, 'SCTP');
    await dataplane.resync(planOf([web, dns, plain, calls]));
    expect(nodePorts(nft)).toEqual(['tcp . 30080', 'udp . 30053']);
    expect(standIns()).toBe(1);
    const moved = { ...web, nodePort: 30081 };
    await dataplane.sync(planOf([moved, plain, calls]), { upserted: [moved], removed: [dns], replaced: [web] });
    expect(nodePorts(nft)).toEqual(['tcp . 30081']);
    expect(states.at(-1)).toMatchObject({ family: 'IPv4', served: 1 });
  });

  it('writes nothing for changes that leave NodePorts as they are', async () => {
    const { nft, dataplane } = setUp();
    const web = port('web', 30080);
    await dataplane.resync(planOf([web]));
    const before = nft.commits.length;
    const changed = { ...web, affinitySeconds: 9 };
    await dataplane.sync(planOf([changed]), { upserted: [changed], removed: [], replaced: [web] });
    await dataplane.verify();
    expect(nft.commits.length).toBe(before);
  });

  it('keeps a NodePort that passes from one Service to another in one change', async () => {
    const { nft, dataplane } = setUp();
    const [first, second] = [port('first', 30080), port('second', 30080)];
    await dataplane.resync(planOf([first]));
    await dataplane.sync(planOf([second]), { upserted: [second], removed: [first] });
    expect(nodePorts(nft)).toEqual(['tcp . 30080']);
    const [left, right] = [
      { ...second, nodePort: 30090 },
      { ...first, nodePort: 30080 },
    ];
    await dataplane.sync(planOf([left, right]), { upserted: [left, right], removed: [], replaced: [second] });
    expect(nodePorts(nft)).toEqual(['tcp . 30080', 'tcp . 30090']);
  });

  it('tells a refusal without failing the sync, and mends it with the next look', async () => {
    const { nft, dataplane, states, inner } = setUp();
    const web = port('web', 30080);
    nft.refuse = ({ object }) => (object.kind === 'chain' ? EINVAL : undefined);
    await dataplane.resync(planOf([web]));
    expect(inner.kernel.size).toBe(1);
    expect(states.at(-1)).toMatchObject({ served: 0, error: expect.objectContaining({ errnoName: 'EINVAL' }) });
    nft.refuse = () => undefined;
    await dataplane.verify();
    expect(nodePorts(nft)).toEqual(['tcp . 30080']);
    expect(states.at(-1)).toMatchObject({ served: 1, repaired: false });
  });

  it('brings back what others removed, between two changes and at a verification', async () => {
    const { nft, dataplane, states } = setUp();
    const [web, more] = [port('web', 30080), port('more', 30081)];
    await dataplane.resync(planOf([web]));
    const intact = nft.toString();
    nft.commit([{ operation: 'destroy', object: { kind: 'table', family: 'ip', name: 'nodeplane-localhost' } }]);
    await dataplane.verify();
    expect(nft.toString()).toBe(intact);
    expect(states.at(-1)).toMatchObject({ repaired: true });
    nft.commit([{ operation: 'destroy', object: { kind: 'table', family: 'ip', name: 'nodeplane-localhost' } }]);
    await dataplane.sync(planOf([web, more]), { upserted: [more], removed: [] });
    expect(states.at(-1)).toMatchObject({ served: 2, repaired: true });
    expect(nodePorts(nft)).toEqual(['tcp . 30080', 'tcp . 30081']);
  });

  it('tells, and takes away, what others put into its table', async () => {
    const { nft, dataplane } = setUp();
    const plan = planOf([port('web', 30080)]);
    await dataplane.resync(plan);
    expect(await dataplane.compare()).toEqual([]);
    const place = { family: 'ip', table: 'nodeplane-localhost' } as const;
    const base = { type: 'filter', hook: 'input', priority: 0, policy: 'drop' } as const;
    nft.commitAsOther({ operation: 'add', object: { kind: 'chain', ...place, name: 'strange', base } });
    expect(await dataplane.compare()).toMatchObject([
      { object: 'chain ip nodeplane-localhost strange', difference: 'unexpected' },
    ]);
    await dataplane.resync(plan);
    expect(await dataplane.compare()).toEqual([]);
    expect(nft.toString()).not.toContain('strange');
  });

  it('leaves nothing where no such NodePorts are wanted, and writes nothing where nothing is', async () => {
    const { nft, dataplane, standIns } = setUp();
    const web = port('web', 30080);
    await dataplane.resync(planOf([web], false));
    expect(nft.commits).toEqual([]);
    await dataplane.resync(planOf([web]));
    await dataplane.resync(planOf([web], false));
    expect(nft.toString()).toBe('');
    expect(standIns()).toBe(0);
  });

  it('does not follow a dataplane that failed', async () => {
    const { nft, dataplane, inner } = setUp();
    inner.failNext();
    await expect(dataplane.resync(planOf([port('web', 30080)]))).rejects.toThrow('refuses');
    expect(nft.commits).toEqual([]);
  });
});
