import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { enterNetns } from '../../../src/sys/index.ts';
import { resourceOfKind } from '../../fakes/api-server/api-object.ts';
import { apiNode, apiService, apiSlice, FakeApiServer } from '../../fakes/api-server/index.ts';
import { type Agent, createLab, type LabNode, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';

// NodePorts whose number somebody of the node has: real sockets, and the Events that an API server gets.

const [CLASHING, OWN, DNS, FREE] = [30_080, 30_081, 30_053, 30_090];
const POLL = { timeout: patient(60_000), interval: 500 };

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const web = node.addPod('web');
let api: FakeApiServer;
let agent: Agent;

interface Recorded {
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly kind: string; readonly name: string };
}

const events = () =>
  (api.history.objects(resourceOfKind('Event')) as unknown as Recorded[])
    .filter(({ reason }) => reason.startsWith('NodePort'))
    .map(({ reason, note, regarding: { kind, name } }) => ({ told: `${kind} ${name} ${reason}`, note }));

const nodePort = (name: string, number: number, clusterIP: string, protocol = 'TCP', more: object = {}) => [
  apiService(`shop/${name}`, {
    spec: {
      type: 'NodePort',
      clusterIP,
      clusterIPs: [clusterIP],
      ports: [{ name: 'http', protocol, port: 80, targetPort: 8080, nodePort: number }],
      ...more,
    },
  }),
  apiSlice(`shop/${name}`, [web.ip()]),
];

beforeAll(async () => {
  await web.serve({ port: 8080 });
  await node.serve({ port: CLASHING });
  await node.serve({ port: DNS, protocol: 'UDP' });
  await node.serve({ port: FREE, ip: '127.0.0.1' });
  // From here on this thread lives in the node's namespace, and so does the API server it runs.
  enterNetns(node.namespace.path);
  api = new FakeApiServer();
  await api.start();
  api.writeKubeconfig(join(lab.folder, 'kubeconfig'));
  const local = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: OWN };
  api.apply(
    apiNode('node-1', node.ip()),
    ...nodePort('web', CLASHING, '10.96.0.10'),
    ...nodePort('dns', DNS, '10.96.0.11', 'UDP'),
    ...nodePort('free', FREE, '10.96.0.12'),
    ...nodePort('balanced', 30_085, '10.96.0.13', 'TCP', local),
    // The agent itself listens there, for the health of the one before.
    ...nodePort('own', OWN, '10.96.0.14'),
  );
  const flags = ['--proxy-mode', 'nftables', '--kubeconfig', join(lab.folder, 'kubeconfig')];
  agent = await node.startAgent({ program: 'kube-proxy', flags });
}, 300_000);
afterAll(async () => {
  await agent.stop();
  await api.stop();
  removeAll();
});

it('tells Services whose number a process of the node has, and no others', async () => {
  await expect.poll(() => events().length, POLL).toBe(2);
  expect(events().map(({ told }) => told)).toEqual(['Service dns NodePortClash', 'Service web NodePortClash']);
  expect(events()[1]!.note).toContain(`A process of node "node-1" listens on`);
  expect(agent.logs().filter(({ msg }) => String(msg).includes('listen on NodePorts too'))).toMatchObject([
    { level: 'warn', count: 2 },
  ]);
  expect(node.namespace.run('ss', '-ltn')).toContain(`:${OWN} `);
});

it('tells the Node once that NodePorts are in the range the kernel gives away, and nothing that was told before', async () => {
  node.namespace.run('sysctl', '-qw', 'net.ipv4.ip_local_port_range=30000 60999');
  node.namespace.run('sysctl', '-qw', 'net.ipv4.ip_local_reserved_ports=30085-30099');
  api.apply(...nodePort('more', 30_099, '10.96.0.15'));
  await expect.poll(() => events().length, POLL).toBe(3);
  const { note } = events().find(({ told }) => told === 'Node node-1 NodePortsNotReserved')!;
  expect(note).toContain(`NodePorts ${DNS}, ${CLASHING}, ${OWN} lie in net.ipv4.ip_local_port_range (30000 60999)`);
});
