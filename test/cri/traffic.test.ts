import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { IpFamily } from '../../src/core/index.ts';
import { makeService, makeSlice } from '../fakes/service-objects.ts';
import type { Host } from '../lab/host.ts';
import { createLab, type LabNode, removeAll, tally } from '../lab/lab.ts';
import { manifestOf, saveManifest } from '../samples/manifests.ts';
import { startContainerd } from './containerd.ts';
import { type CniRuntime, manifestsOf, serveByAgent } from './plugins.ts';
import { runPod } from './pod.ts';
import { createPodman, podmanObjection } from './podman.ts';

// What the pods of every runtime reach, and from where they are reached, on a node whose agent serves CNI and Services.

/** A port of a pod that is published at the node under the number `hostPort`. */
interface PublishedPort {
  readonly hostPort: number;
  readonly containerPort: number;
}

/** A runtime that is served, and how it makes a pod. */
interface Started {
  readonly runtime: CniRuntime;
  run(name: string, publish?: readonly PublishedPort[]): Promise<Host>;
}

const ROUTED = {
  cniVersion: '1.0.0',
  name: 'nodeplane',
  plugins: [
    {
      type: 'nodeplane-cni',
      mode: 'routed',
      ipam: { type: 'nodeplane' },
      ipMasq: true,
      capabilities: { portMappings: true },
    },
  ],
};

async function containerdNode(node: LabNode, conflist?: typeof ROUTED): Promise<Started> {
  const runtime = await startContainerd(node);
  await serveByAgent(runtime, node, { conflist });
  return { runtime, run: (name, portMappings = []) => runPod(runtime, name, { portMappings }) };
}

async function podmanNode(node: LabNode): Promise<Started> {
  const runtime = await createPodman(node);
  await serveByAgent(runtime, node);
  return {
    runtime,
    run: async (name, ports = []) =>
      runtime.start({ name, publish: ports.map(({ hostPort, containerPort }) => `${hostPort}:${containerPort}`) }),
  };
}

const NODES: [name: string, start: (node: LabNode) => Promise<Started>, objection?: string | undefined][] = [
  ['containerd with a bridge', (node) => containerdNode(node)],
  ['containerd without a bridge', (node) => containerdNode(node, ROUTED)],
  ['podman', podmanNode, podmanObjection()],
];

const SERVICES = { IPv4: '10.96.0.10', IPv6: 'fd00:10:96::10' } as const;
const NODE_PORT = 30080;
const HOST_PORT = 8088;
const FAMILIES = ['IPv4', 'IPv6'] as const;
const BY_BOTH = { answers: { 'web-1': expect.any(Number), 'web-2': expect.any(Number) }, failures: {} };

afterAll(removeAll);

describe.each(NODES)('pods of %s', (_name, start, objection) => {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  const outside = lab.addClient('outside');
  let backends: [Host, Host];
  let client: Host;
  beforeEach(({ skip }) => skip(objection !== undefined, objection));
  beforeAll(async () => {
    if (objection !== undefined) return;
    const { runtime, run } = await start(node);
    backends = [await run('web-1', [{ hostPort: HOST_PORT, containerPort: 8080 }]), await run('web-2')];
    client = await run('client');
    for (const pod of backends) await pod.serve({ port: 8080 });
    await node.serve({ port: 8080 });
    await outside.serve({ port: 8080 });
    saveManifest(manifestsOf(runtime), 'web.yaml', manifest(backends));
  });

  describe.each(FAMILIES)('with %s', (family) => {
    it('reach each other and their node, and are reached by it', async () => {
      const [web] = backends;
      const answered = (by: string, source: unknown) => ({ kind: 'answered', by, source });
      const toWeb = { ip: web.ip(family), port: 8080 };
      expect(await client.connect(toWeb)).toMatchObject(answered('web-1', client.ip(family)));
      expect(await node.connect(toWeb)).toMatchObject(answered('web-1', expect.any(String)));
      const toNode = { ip: node.ip(family), port: 8080 };
      expect(await client.connect(toNode)).toMatchObject({ kind: 'answered', by: 'node-1' });
    });

    it('reach what is outside with the address of their node', async () => {
      const outcome = await client.connect({ ip: outside.ip(family), port: 8080 });
      expect(outcome).toMatchObject({ kind: 'answered', by: 'outside', source: node.ip(family) });
    });

    it('are reached through their Service: by a pod, by themselves, by their node and from outside', async () => {
      const service = { ip: SERVICES[family], port: 80 };
      const nodePort = { ip: node.ip(family), port: NODE_PORT };
      await expect.poll(() => client.connect(service, { timeoutMs: 200 })).toMatchObject({ kind: 'answered' });
      for (const [host, target] of [
        [client, service],
        [backends[0], service],
        [node, service],
        [outside, nodePort],
      ] as const) {
        const outcomes = await host.connectMany(target, 40);
        expect(tally(outcomes), `from ${host.name}`).toMatchObject(BY_BOTH);
      }
    });

    it('are reached through a port of their node: from outside, by a pod, by themselves and by their node', async () => {
      const target = { ip: node.ip(family), port: HOST_PORT };
      const fromOutside = { kind: 'answered', by: 'web-1', source: outside.ip(family) };
      expect(await outside.connect(target)).toMatchObject(fromOutside);
      for (const host of [client, backends[0], node]) {
        expect(await host.connect(target), `from ${host.name}`).toMatchObject({ kind: 'answered', by: 'web-1' });
      }
    });
  });
});

function manifest(backends: readonly Host[]): string {
  const service = makeService('demo/web', {
    type: 'NodePort',
    clusterIP: SERVICES.IPv4,
    clusterIPs: Object.values(SERVICES),
    ports: [{ port: 80, nodePort: NODE_PORT }],
  });
  const endpoints = (family: IpFamily) => backends.map((pod) => ({ addresses: [pod.ip(family)], nodeName: 'node-1' }));
  const slices = FAMILIES.map((addressType) => makeSlice('demo/web', endpoints(addressType), { addressType }));
  return manifestOf(service, ...slices);
}
