import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { linesOf } from '../cni/feature-world.ts';
import { createServedNode, installedConfig } from '../cni/served-node.ts';
import { diffHere } from '../diff-here.ts';
import { createHost, type Host } from '../host.ts';
import { type Agent, removeAll } from '../lab.ts';
import { createNamespace } from '../namespace.ts';

// Who saves the rules of a host by `nft list ruleset > /etc/nftables.conf` saves ours too. What `nft` does not read again there it
// refuses with all the rest, and the host boots without its firewall.

const FLAGS = ['--proxy-mode', 'nftables', '--routes', 'vxlan', '--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48'];
const FIREWALL =
  'table inet site { chain in { type filter hook input priority 0; policy accept; tcp dport 9 drop; }; }';

/** Every kind of Service that has rules of its own: by affinity (IPv4), to endpoints here, for sources, without endpoints. */
const services = (endpoint: string) => `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: demo }
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.10
  clusterIPs: [10.96.0.10, "fd00:10:96::10"]
  ipFamilies: [IPv4, IPv6]
  externalTrafficPolicy: Local
  loadBalancerSourceRanges: [198.51.100.0/24, 192.168.0.0/16, "2001:db8::/32"]
  ports: [{ name: http, port: 80, targetPort: 80, nodePort: 30080 }]
status: { loadBalancer: { ingress: [{ ip: 203.0.113.7 }, { ip: "2001:db8:7::7" }] } }
---
apiVersion: v1
kind: Service
metadata: { name: sticky, namespace: demo }
spec:
  type: NodePort
  clusterIP: 10.96.0.11
  sessionAffinity: ClientIP
  ports: [{ name: http, port: 80, targetPort: 80, nodePort: 30081 }, { name: dns, protocol: UDP, port: 53, targetPort: 80 }]
---
apiVersion: v1
kind: Service
metadata: { name: empty, namespace: demo }
spec:
  type: NodePort
  clusterIP: 10.96.0.12
  ports: [{ name: http, port: 80, nodePort: 30082 }]
---
${['web', 'sticky']
  .map(
    (name) => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}-4, namespace: demo, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
endpoints: [{ addresses: [${endpoint}], nodeName: node-1 }, { addresses: [10.244.9.9], nodeName: node-9 }]
ports: [{ name: http, port: 80 }, { name: dns, protocol: UDP, port: 80 }]
---
`,
  )
  .join('')}apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-6, namespace: demo, labels: { kubernetes.io/service-name: web } }
addressType: IPv6
endpoints: [{ addresses: ["fd00:10:244:9::9"], nodeName: node-9 }]
ports: [{ name: http, port: 80 }]
`;

const served = createServedNode();
const { namespace } = served.node;
const start = (): Promise<Agent> => served.startAgent({ flags: FLAGS });
const ruleset = () => namespace.run('nft', 'list', 'ruleset');
let agent: Agent;
let pod: Host;

beforeAll(async () => {
  const save = (name: string, text: string) => saveManifest(join(served.folder, 'manifests'), name, text);
  save('node.yaml', manifestOf(nodeObject(served.node)));
  agent = await start();
  const config = {
    ...installedConfig(served.conflist),
    ingressPolicy: 'same-bridge',
    macspoofchk: true,
    runtimeConfig: {
      portMappings: [
        { hostPort: 8080, containerPort: 80, protocol: 'tcp' },
        { hostPort: 8081, containerPort: 80, protocol: 'tcp', hostIP: '127.0.0.1' },
      ],
    },
  };
  const made = createNamespace('pod');
  const added = await served.call('ADD', made, { config });
  expect(added).toMatchObject({ status: 0 });
  pod = createHost({
    name: 'pod',
    namespace: made,
    ips: (added.json?.ips ?? []).map(({ address }) => address.replace(/\/.*/, '')),
  });
  await pod.serve({ port: 80 });
  save('services.yaml', services(pod.ip('IPv4')));
  namespace.run('nft', FIREWALL);
});
afterAll(removeAll);

const isServed = async () => {
  const client = createHost({ name: 'node-1', namespace, ips: [...served.node.ips] });
  const asked = [
    { ip: '10.96.0.10', port: 80 },
    { ip: served.node.ip('IPv4'), port: 30080 },
    { ip: served.node.ip('IPv4'), port: 8080 },
  ];
  const outcomes = await Promise.all(asked.map((to) => client.connect(to)));
  return outcomes.map(({ kind }) => kind);
};

it('is read again by nft, with all tables of this node in it, and the next agent goes on from there', async () => {
  await expect.poll(isServed).toEqual(['answered', 'answered', 'answered']);
  await agent.stop();
  const saved = ruleset();
  for (const table of [
    'ip nodeplane',
    'ip6 nodeplane',
    'inet nodeplane-cni',
    'bridge nodeplane-cni',
    'inet nodeplane-routes',
  ]) {
    expect(saved).toContain(`table ${table} {`);
  }
  namespace.run('nft', 'flush', 'ruleset');
  namespace.run('sh', '-ec', 'printf %s "$1" | nft -f -', 'sh', saved);
  expect(linesOf(ruleset())).toEqual(linesOf(saved));

  agent = await start();
  await expect.poll(isServed).toEqual(['answered', 'answered', 'answered']);
  expect(await diffHere(namespace)).toMatchObject({ exitCode: 0 });
});
