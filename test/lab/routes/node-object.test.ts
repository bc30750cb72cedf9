import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { enterNetns, exec } from '../../../src/sys/index.ts';
import { grantedBy, render, SYSTEM_NODE_PROXIER } from '../../deploy/render.ts';
import { type ApiObject, apiNode, FakeApiServer } from '../../fakes/api-server/index.ts';
import { type Agent, createLab, type Lab, type LabNode, removeAll } from '../lab.ts';
import { builtProgram } from '../programs.ts';

// What the agent writes into its own Node object, and for flannel into a file, with the permissions of deploy/.

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
  const conditions = [
    { type: 'Ready', status: 'True' },
    { type: 'NetworkUnavailable', status: 'True', reason: 'NoRouteCreated', message: 'Node created without a route' },
  ];
  const addresses = node.ips.map((address) => ({ type: 'InternalIP', address }));
  const spec = { podCIDR: node.podCidrs[0], podCIDRs: node.podCidrs };
  api.apply({ ...apiNode('node-1'), spec, status: { addresses, conditions } });
  const conf = {
    Network: '10.244.0.0/16',
    EnableIPv6: true,
    IPv6Network: 'fd00:10:244::/48',
    Backend: { Type: 'vxlan', VNI: 77 },
  };
  writeFileSync(join(lab.folder, 'net-conf.json'), JSON.stringify(conf));
});
afterAll(async () => {
  await agent?.stop();
  await api.stop();
  removeAll();
});

const path = (name: string) => join(lab.folder, name);
async function start(...more: string[]): Promise<Agent> {
  const folders = ['bin-dir', 'conf-dir', 'spool-dir', 'data-dir'].flatMap((name) => [`--cni-${name}`, path(name)]);
  const flannel = ['annotations=true', `net-conf=${path('net-conf.json')}`, `subnet-file=${path('run/subnet.env')}`];
  agent = await node.startAgent({
    flags: [
      ...['--proxy-mode', 'nftables', '--kubeconfig', path('kubeconfig'), '--cni', '--cni-socket', path('cni.sock')],
      ...folders,
      ...flannel.map((flag) => `--routes-flannel-${flag}`),
      ...more,
    ],
  });
  return agent;
}

const object = (): ApiObject => api.objects('Node')[0]!;
const annotationsOf = () => object().metadata.annotations ?? {};

it('says in flannel’s words where its pods are, and clears NetworkUnavailable, with the rights of deploy/overlays/full', async () => {
  api.misbehave.rules = [...SYSTEM_NODE_PROXIER, ...grantedBy(render('overlays/full/nftables'))];
  const { logs, metrics } = await start();
  await expect.poll(annotationsOf).toMatchObject({
    'flannel.alpha.coreos.com/backend-data': expect.stringMatching(/^{"VNI":77,"VtepMAC":"[0-9a-f:]{17}"}$/),
    'flannel.alpha.coreos.com/public-ipv6': node.ip('IPv6'),
  });
  expect(object()).toMatchObject({
    spec: { podCIDRs: node.podCidrs },
    status: {
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'NetworkUnavailable', status: 'False', reason: 'NodeplaneIsUp' },
      ],
    },
  });
  expect(api.count('patch', 'nodes')).toBe(1);
  await expect.poll(metrics).toMatch(/^nodeplane_node_unwritten_fields 0$/m);
  expect(logs().filter(({ level }) => level === 'error')).toEqual([]);
});

it('writes subnet.env for flannel’s plugins', () => {
  expect(readFileSync(path('run/subnet.env'), 'utf8')).toBe(`FLANNEL_NETWORK=10.244.0.0/16
FLANNEL_SUBNET=10.244.1.1/24
FLANNEL_IPV6_NETWORK=fd00:10:244::/48
FLANNEL_IPV6_SUBNET=fd00:10:244:1::1/64
FLANNEL_MTU=1430
FLANNEL_IPMASQ=true
`);
});

it('names the right it lacks, once', async () => {
  await agent!.stop();
  api.misbehave.rules = SYSTEM_NODE_PROXIER;
  const { metadata, ...rest } = object();
  api.apply({ ...rest, metadata: { ...metadata, annotations: {} } });
  const { logs, metrics } = await start();
  const told = () => logs().filter(({ msg, level }) => level === 'error' && String(msg).startsWith('Our Node object'));
  await expect
    .poll(told)
    .toMatchObject([
      { err: { message: expect.stringContaining('needs the RBAC verb "patch" on resource "nodes/status"') } },
    ]);
  expect(await metrics()).toMatch(/^nodeplane_node_unwritten_fields 7$/m);
});

it('says what the node came from, before it is gone and after, and a command says it too', async () => {
  await agent!.stop();
  api.misbehave.rules = [...SYSTEM_NODE_PROXIER, ...grantedBy(render('overlays/full/nftables'))];
  node.namespace.run('nft', 'delete table ip nodeplane; delete table ip6 nodeplane; add table ip kube-proxy');
  await start('--migration-annotation');
  const note = () => JSON.parse(annotationsOf()['nodeplane.io/migration'] ?? '{}');
  await expect.poll(note).toMatchObject({ from: ['kube-proxy nftables'], step: 'taken-over' });
  const { since } = note();
  const flags = ['--hostname-override', 'node-1', '--kubeconfig', path('kubeconfig')];
  const said = await exec(builtProgram('nodeplane'), ['migration', ...flags]);
  expect(said.stdout).toMatch(/^State +taken over$/m);
  expect(said.stdout).toContain(`taken-over since ${since}, from kube-proxy nftables`);
  await agent!.kill();
  const writes = api.count('patch', 'nodes');
  await start('--migration-annotation');
  // Another annotation brings the agent to a look at its Node.
  expect(note()).toEqual({ from: ['kube-proxy nftables'], step: 'taken-over', since });
  expect(api.count('patch', 'nodes')).toBe(writes);
});
