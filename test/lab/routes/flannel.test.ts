import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { enterNetns } from '../../../src/sys/index.ts';
import { type ApiObject, apiNode, FakeApiServer } from '../../fakes/api-server/index.ts';
import { type Agent, createLab, type Host, type Lab, type LabNode, type Pod, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { FAMILIES } from './cluster.ts';
import { Flanneld } from './flanneld.ts';

// docs/migration.md, "From flannel": node by node, and back. Pods reach each other after every step.

const PORT = 8080;
let server: Host;
let lab: Lab;
let api: FakeApiServer;
let nodes: LabNode[];
let pods: Pod[];
const agents = new Map<string, Agent>();

beforeAll(async () => {
  lab = createLab({ podRoutes: false });
  nodes = ['node-1', 'node-2', 'node-3'].map((name) => lab.addNode({ name }));
  pods = nodes.map((node, index) => node.addPod(`pod-${index + 1}`));
  for (const pod of pods) await pod.serve({ port: PORT });
  server = lab.addClient('api');
  // From here on this thread lives in a namespace that all nodes reach, and so does the API server it runs.
  enterNetns(server.namespace.path);
  api = new FakeApiServer({ address: server.ip() });
  await api.start();
  api.writeKubeconfig(join(lab.folder, 'kubeconfig'));
});
afterAll(async () => {
  for (const agent of agents.values()) await agent.stop();
  await api.stop();
  removeAll();
});

/** A Node as the kubelet and the controller make it. */
function object(node: LabNode): ApiObject {
  const base = apiNode(node.name, '');
  const addresses = node.ips.map((address) => ({ type: 'InternalIP', address }));
  return { ...base, spec: { podCIDR: node.podCidrs[0], podCIDRs: node.podCidrs }, status: { addresses } };
}

async function start(node: LabNode, mode: string): Promise<Agent> {
  const flags = ['--proxy-mode', 'nftables', '--kubeconfig', join(lab.folder, 'kubeconfig'), '--routes', mode];
  const agent = await node.startAgent({ flags: [...flags, '--routes-flannel-annotations'] });
  agents.set(node.name, agent);
  return agent;
}

async function stop(node: LabNode): Promise<void> {
  await agents.get(node.name)!.stop();
  agents.delete(node.name);
}

const annotationsOf = (node: LabNode) =>
  api.objects('Node').find(({ metadata }) => metadata.name === node.name)!.metadata.annotations ?? {};
const said = (node: LabNode, name: string) => annotationsOf(node)[`flannel.alpha.coreos.com/${name}`];

async function ask(from: Pod, to: Pod, family: 'IPv4' | 'IPv6', timeoutMs = 1000): Promise<string> {
  const outcome = await from.connect({ ip: to.ip(family), port: PORT }, { timeoutMs });
  return outcome.kind === 'answered' ? `${outcome.by} saw ${outcome.source}` : outcome.kind;
}

const PAIRS = [0, 1, 2].flatMap((from) => [0, 1, 2].filter((to) => to !== from).map((to) => [from, to] as const));

/** Every pod reaches every other one, in both families, and is seen with its own address. */
async function allReachAll(): Promise<void> {
  const asked = PAIRS.flatMap(([from, to]) => FAMILIES.map((family) => [pods[from]!, pods[to]!, family] as const));
  await expect
    .poll(() => Promise.all(asked.map(([from, to, family]) => ask(from, to, family))))
    .toEqual(asked.map(([from, to, family]) => `${to.name} saw ${from.ip(family)}`));
}

const links = (node: LabNode) => node.namespace.run('ip', '-o', 'link');
const routes = (node: LabNode, ...filter: string[]) =>
  ['-4', '-6'].map((family) => node.namespace.run('ip', family, 'route', 'show', ...filter)).join('');

describe('backend vxlan', () => {
  let [one, two, three]: LabNode[] = [];
  let flanneld: Flanneld[] = [];

  beforeAll(() => {
    [one, two, three] = nodes;
    api.apply(...nodes.map(object));
    flanneld = [one!, two!].map((node) => new Flanneld(api, node, 'vxlan'));
    for (const each of flanneld) each.start();
  });

  it('a node that never had flannel joins nodes of flannel', async () => {
    await start(three!, 'vxlan');
    await expect.poll(() => said(three!, 'public-ipv6')).toBe(three!.ip('IPv6'));
    expect(said(three!, 'backend-type')).toBe('vxlan');
    for (const each of flanneld) each.hear();
    await allReachAll();
  });

  it('the agent starts beside flannel.1, says what is in the way, and breaks nothing', async () => {
    const macs = FAMILIES.map((_, index) => said(one!, ['backend-data', 'backend-v6-data'][index]!));
    const agent = await start(one!, 'vxlan');
    for (const device of ['flannel.1', 'flannel-v6.1']) {
      await expect
        .poll(() => JSON.stringify(agent.logs()))
        .toContain(
          `network 1 at port 8472 belongs to \\"${device}\\"; stop what made it and remove it (ip link delete ${device})`,
        );
    }
    await allReachAll();
    expect([said(one!, 'backend-data'), said(one!, 'backend-v6-data')]).toEqual(macs);
  });

  it('takes its place as soon as it is gone, with its MAC address, so that nobody has to learn anything', async () => {
    const mac = JSON.parse(said(one!, 'backend-data')!).VtepMAC;
    for (const device of ['flannel.1', 'flannel-v6.1']) one!.namespace.run('ip', 'link', 'delete', device);
    const answered = () => Promise.all(FAMILIES.map((family) => ask(pods[0]!, pods[1]!, family, 100)));
    await expect.poll(answered, { interval: 5 }).toEqual(FAMILIES.map((family) => `pod-2 saw ${pods[0]!.ip(family)}`));
    expect(links(one!)).toMatch(new RegExp(`nodeplane-v4.*link/ether ${mac}`));
    expect(said(one!, 'backend-data')).toBe(`{"VNI":1,"VtepMAC":"${mac}"}`);
    await allReachAll();
  });

  it('the other node follows', async () => {
    await start(two!, 'vxlan');
    for (const device of ['flannel.1', 'flannel-v6.1']) two!.namespace.run('ip', 'link', 'delete', device);
    await allReachAll();
  });

  it('and goes back: the agent is stopped and cleaned up, flannel comes with the MAC address it had', async () => {
    const before = said(two!, 'backend-data');
    await stop(two!);
    two!.namespace.run(builtProgram('nodeplane'), 'cleanup', '--routes');
    expect(links(two!)).not.toContain('nodeplane-');
    flanneld[1]!.start();
    expect(said(two!, 'backend-data')).toBe(before);
    await allReachAll();
  });

  it('an agent without --routes-flannel-annotations takes away what it wrote, and nothing that flannel did', async () => {
    await stop(one!);
    const flags = ['--proxy-mode', 'nftables', '--kubeconfig', join(lab.folder, 'kubeconfig'), '--routes', 'vxlan'];
    agents.set(one!.name, await one!.startAgent({ flags }));
    await expect.poll(() => annotationsOf(one!)).toEqual({});
    expect(said(two!, 'backend-type')).toBe('vxlan');
  });
});

describe('backend host-gw', () => {
  let [one, two, three]: LabNode[] = [];
  let flanneld: Flanneld[] = [];

  beforeAll(async () => {
    [one, two, three] = nodes;
    for (const node of nodes) {
      if (agents.has(node.name)) await stop(node);
      node.namespace.run(builtProgram('nodeplane'), 'cleanup', '--routes');
      for (const device of ['flannel.1', 'flannel-v6.1']) {
        if (links(node).includes(`${device}:`)) node.namespace.run('ip', 'link', 'delete', device);
      }
      api.delete('Node', node.name);
    }
    api.apply(...nodes.map(object));
    flanneld = [one!, two!].map((node) => new Flanneld(api, node, 'host-gw'));
    for (const each of flanneld) each.start();
  }, patient(300_000));

  it('a node that never had flannel joins nodes of flannel', async () => {
    await start(three!, 'host-gw');
    await expect.poll(() => said(three!, 'backend-v6-data')).toBe('null');
    expect(said(three!, 'backend-type')).toBe('host-gw');
    for (const each of flanneld) each.hear();
    await allReachAll();
  });

  it('the agent takes flannel’s routes over in place, and leaves those of others', async () => {
    one!.namespace.run('ip', 'route', 'add', '10.99.0.0/24', 'via', two!.ip());
    const load = await pods[0]!.startLoad({ ip: pods[1]!.ip(), port: PORT });
    await start(one!, 'host-gw');
    const cidrs = [two!, three!].flatMap((node) => node.podCidrs);
    for (const cidr of cidrs) await expect.poll(() => routes(one!, 'proto', '78')).toContain(cidr);
    expect((await load.stop()).failures).toEqual([]);
    expect(routes(one!, 'proto', 'boot')).toMatch(/^10\.99\.0\.0\/24 via \S+ dev eth0 *$/m);
    for (const cidr of cidrs) expect(routes(one!, 'proto', 'boot')).not.toContain(cidr);
    await allReachAll();
  });

  it('and goes back', async () => {
    await stop(one!);
    one!.namespace.run(builtProgram('nodeplane'), 'cleanup', '--routes');
    flanneld[0]!.start();
    await allReachAll();
  });
});
