import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Agent, createLab, type LabNode, type Pod } from '../lab.ts';

/** A name that no Service can have: it is refused, and told as a problem of the file. */
export const HOSTILE = '</style><script>alert(1)</script>\u001b[2J"\'';

export interface StatusNode {
  readonly node: LabNode;
  readonly pods: readonly Pod[];
  readonly manifests: string;
  start(...flags: string[]): Promise<Agent>;
  /** Gives Service search another number of endpoints. */
  edit(number: number): void;
}

const meta = (name: string, more: object = {}) => ({ name, namespace: 'shop', ...more });

function service(name: string, spec: object): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: meta(name),
    spec: { ports: [{ name: 'http', port: 80 }], ...spec },
  };
}

function slice(serviceName: string, endpoints: readonly object[]): object {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: meta(`${serviceName}-a`, { labels: { 'kubernetes.io/service-name': serviceName } }),
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints,
  };
}

function nodeObject(name: string, number: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: { podCIDR: `10.244.${number}.0/24`, podCIDRs: [`10.244.${number}.0/24`] },
    status: { addresses: [{ type: 'InternalIP', address: `192.168.50.${number}` }] },
  };
}

/** A node with Services that fare differently: served, refused, dropped, partly unusable. */
export async function createStatusNode(): Promise<StatusNode> {
  const lab = createLab({ podRoutes: false });
  const [node] = ['node-1', 'node-2'].map((name) => lab.addNode({ name }));
  const pods = ['web-1', 'web-2'].map((name) => node!.addPod(name));
  for (const pod of pods) await pod.serve({ port: 8080 });
  const manifests = join(lab.folder, 'manifests');
  mkdirSync(manifests);
  const ready = { ready: true };
  const objects = [
    nodeObject('node-1', 1),
    nodeObject('node-2', 2),
    service('web', { clusterIP: '10.96.0.10', type: 'NodePort', ports: [{ name: 'http', port: 80, nodePort: 30080 }] }),
    slice('web', [
      ...pods.map((pod) => ({ addresses: [pod.ip()], nodeName: 'node-1', conditions: ready })),
      { addresses: ['10.244.2.11'], nodeName: 'node-2', conditions: ready },
      { addresses: ['10.244.2.12'], nodeName: 'node-2', conditions: { ready: false } },
    ]),
    service('empty', { clusterIP: '10.96.0.20' }),
    service('cart', { clusterIP: '10.96.0.30', internalTrafficPolicy: 'Local', sessionAffinity: 'ClientIP' }),
    slice('cart', [{ addresses: ['10.244.2.13'], nodeName: 'node-2', conditions: ready }]),
    service('search', { clusterIP: '10.96.0.40' }),
    service('mail', { clusterIP: '10.96.0.60', externalIPs: ['169.254.169.254'] }),
    slice('mail', [{ addresses: ['10.244.2.14'], nodeName: 'node-2', conditions: ready }]),
  ];
  writeFileSync(join(manifests, 'all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  writeFileSync(join(manifests, 'hostile.json'), JSON.stringify(service(HOSTILE, { clusterIP: '10.96.0.50' })));
  const edit = (number: number) => {
    const addresses = [pods[0]!.ip(), '10.244.2.15', '10.244.2.16'].slice(0, 1 + (number % 3));
    const endpoints = addresses.map((address) => ({ addresses: [address], nodeName: 'node-1', conditions: ready }));
    writeFileSync(join(manifests, 'search.json'), JSON.stringify(slice('search', endpoints)));
  };
  edit(0);
  return { node: node!, pods, manifests, edit, start: (...flags) => node!.startAgent({ manifests, flags }) };
}
