import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Agent, createLab, removeAll, tally } from '../lab/lab.ts';
import { type Containerd, startContainerd } from './containerd.ts';
import { serveStandAlone, standAloneNetwork } from './plugins.ts';
import { type CriPod, runPod } from './pod.ts';

// Pods that a runtime made, behind Services that the agent serves on the same node.

const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
const outside = lab.addClient('outside');
const SERVICES = { IPv4: '10.96.0.10', IPv6: 'fd00:10:96::10' } as const;
const NODE_PORT = 30080;
const BY_BOTH = { answers: { 'web-1': expect.any(Number), 'web-2': expect.any(Number) }, failures: {} };
let containerd: Containerd;
let backends: CriPod[];
let client: CriPod;
let agent: Agent;
beforeAll(async () => {
  containerd = await startContainerd(node);
  await serveStandAlone(containerd, standAloneNetwork(node));
  backends = [await runPod(containerd, 'web-1'), await runPod(containerd, 'web-2')];
  client = await runPod(containerd, 'client');
  for (const pod of backends) await pod.serve({ port: 8080 });
  const manifests = join(lab.folder, 'manifests');
  mkdirSync(manifests);
  writeFileSync(join(manifests, 'web.yaml'), manifest());
  agent = await node.startAgent({ manifests });
});
afterAll(async () => {
  await agent.stop();
  removeAll();
});

function manifest(): string {
  const slices = (['IPv4', 'IPv6'] as const).map((family) => {
    const endpoints = backends.map((pod) => `- { addresses: ['${pod.ip(family)}'], nodeName: node-1 }`).join('\n');
    return `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-${family.toLowerCase()}, namespace: demo, labels: { kubernetes.io/service-name: web } }
addressType: ${family}
ports: [{ port: 8080 }]
endpoints:
${endpoints}
`;
  });
  return `apiVersion: v1
kind: Node
metadata: { name: node-1 }
spec: { podCIDRs: [${node.podCidrs.join(', ')}] }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: demo }
spec:
  type: NodePort
  clusterIP: ${SERVICES.IPv4}
  clusterIPs: ['${SERVICES.IPv4}', '${SERVICES.IPv6}']
  ipFamilies: [IPv4, IPv6]
  ports: [{ port: 80, targetPort: 8080, nodePort: ${NODE_PORT} }]
${slices.join('')}`;
}

it.each(['IPv4', 'IPv6'] as const)(
  'reaches all pods of a Service from a pod, from the node and from outside with %s',
  async (family) => {
    const service = { ip: SERVICES[family], port: 80 };
    const nodePort = { ip: node.ip(family), port: NODE_PORT };
    for (const [host, target] of [
      [client, service],
      [node, service],
      [outside, nodePort],
    ] as const) {
      const outcomes = await host.connectMany(target, 40);
      expect(tally(outcomes), `from ${host.name}`).toMatchObject(BY_BOTH);
    }
  },
);

it.each(['IPv4', 'IPv6'] as const)('reaches a pod from itself through its Service with %s', async (family) => {
  const [web] = backends;
  const outcomes = await web!.connectMany({ ip: SERVICES[family], port: 80 }, 40);
  expect(tally(outcomes)).toMatchObject(BY_BOTH);
});
