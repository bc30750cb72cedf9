import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { enterNetns } from '../../../src/sys/index.ts';
import { SYSTEM_NODE_PROXIER } from '../../deploy/render.ts';
import { type ApiObject, apiNode, FakeApiServer } from '../../fakes/api-server/index.ts';
import { type Agent, createLab, type Lab, type LabNode, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';

// An agent that is started again while it does not know all Nodes yet: what the one before wrote stays in force.

const OTHERS = 150;

let lab: Lab;
let node: LabNode;
let api: FakeApiServer;
let agent: Agent | undefined;

beforeAll(async () => {
  lab = createLab({ podRoutes: false });
  node = lab.addNode({ name: 'node-1' });
  // From here on this thread lives in the node's namespace, and so does the API server it runs.
  enterNetns(node.namespace.path);
  api = new FakeApiServer();
  await api.start();
  api.writeKubeconfig(join(lab.folder, 'kubeconfig'));
  api.apply(nodeObject('node-1', node.ips, node.podCidrs));
  // An API server lists Nodes by their names: this one comes first.
  for (let n = 0; n < OTHERS; n++)
    api.apply(nodeObject(`node-1x${1000 + n}`, [`192.168.50.${n + 60}`], [`10.244.${n + 60}.0/24`]));
  agent = await start();
}, 300_000);
afterEach(() => {
  Object.assign(api.misbehave, { slow: undefined, streamingLists: true, rules: undefined });
});
afterAll(async () => {
  await agent?.stop();
  await api.stop();
  removeAll();
});

function nodeObject(name: string, ips: readonly string[], podCIDRs: readonly string[]): ApiObject {
  const addresses = ips.map((address) => ({ type: 'InternalIP', address }));
  return { ...apiNode(name), spec: { podCIDR: podCIDRs[0]!, podCIDRs }, status: { addresses } };
}

function start(): Promise<Agent> {
  const flags = ['--proxy-mode', 'nftables', '--kubeconfig', join(lab.folder, 'kubeconfig'), '--routes', 'vxlan'];
  return node.startAgent({ flags: [...flags, '--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48'] });
}

/** What the kernel has for other nodes, and for this one's pods. */
interface Written {
  readonly routes: number;
  /** Elements of the rules beside them. */
  readonly elements: number;
  /** Addresses that answer on NodePorts. */
  readonly nodePorts: number;
}

function written(): Written {
  const lines = (text: string) => text.split('\n').filter((line) => line.trim() !== '').length;
  const { namespace } = node;
  const sets = namespace.run('nft', 'list', 'table', 'inet', 'nodeplane-routes').match(/elements = \{[^}]*\}/g) ?? [];
  const nodePorts = namespace.run('nft', 'list', 'set', 'ip', 'nodeplane', 'nodeport-ips');
  return {
    nodePorts: /elements = \{(.*)\}/.exec(nodePorts)?.[1]?.split(',').length ?? 0,
    routes: lines(namespace.run('ip', 'route', 'show', 'proto', '78')),
    elements: sets.join().split(',').length,
  };
}

/** Looks again and again until `then` is over. */
async function leastUntil(then: Promise<unknown>): Promise<Written> {
  let isOver = false;
  const end = then.finally(() => {
    isOver = true;
  });
  const seen: Written[] = [];
  while (!isOver) {
    seen.push(written());
    await delay(20);
  }
  await end;
  return {
    routes: Math.min(...seen.map(({ routes }) => routes)),
    elements: Math.min(...seen.map(({ elements }) => elements)),
    nodePorts: Math.min(...seen.map(({ nodePorts }) => nodePorts)),
  };
}

/** Told as long as the agent does not know what to write. */
const why = async () => (await fetch('http://127.0.0.1:10256/readyz')).text();

async function restarted(): Promise<void> {
  await agent!.stop();
  agent = await start();
}

it('has all routes', async () => {
  await expect.poll(() => written().routes, { timeout: patient(30_000) }).toBeGreaterThanOrEqual(OTHERS);
  await expect.poll(why).toContain('readyz check passed');
  expect(written().nodePorts).toBe(1);
});

it('takes nothing away while the list of Nodes comes in pieces, this one first', async () => {
  const before = written();
  Object.assign(api.misbehave, { streamingLists: false, slow: { bytes: 3000, pauseMs: 30 } });
  expect(await leastUntil(restarted())).toEqual(before);
  await expect.poll(why).toContain('readyz check passed');
  expect(written()).toEqual(before);
});

it(
  'takes nothing away while Nodes cannot be listed, however long',
  async () => {
    const before = written();
    api.misbehave.rules = SYSTEM_NODE_PROXIER.filter(({ resources }) => !resources.includes('nodes'));
    // Services are not waited for longer than half a minute.
    expect(await leastUntil(restarted())).toEqual(before);
    expect(await why()).toContain('the Nodes of the cluster are not all read yet');
    api.misbehave.rules = undefined;
    await expect.poll(why, { timeout: patient(60_000) }).toContain('readyz check passed');
    expect(written()).toEqual(before);
  },
  patient(150_000),
);

it(
  'takes nothing away while its own Node object is not there',
  async () => {
    const before = written();
    const own = api.objects('Node').find(({ metadata }) => metadata.name === 'node-1')!;
    api.delete('Node', 'node-1');
    expect(await leastUntil(restarted())).toEqual(before);
    expect(await why()).toContain('there is no Node object "node-1" yet');
    api.apply(own);
    await expect.poll(why, { timeout: patient(60_000) }).toContain('readyz check passed');
    expect(written()).toEqual(before);
  },
  patient(150_000),
);

it('keeps the route to a Node that has no address for a while', async () => {
  const before = written();
  api.apply(nodeObject('node-1x1000', [], ['10.244.60.0/24']));
  // What is told later is dealt with later.
  api.apply(nodeObject('node-2', ['192.168.50.250'], ['10.244.250.0/24']));
  await expect.poll(() => written().routes).toBe(before.routes + 1);
  expect(node.namespace.run('ip', 'route', 'show', '10.244.60.0/24')).toContain('10.244.60.0');
});
