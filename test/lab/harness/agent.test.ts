import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab.ts';

const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
const manifests = join(lab.folder, 'manifests');
mkdirSync(manifests);
writeFileSync(
  join(manifests, 'cluster.yaml'),
  `apiVersion: v1
kind: Node
metadata: { name: node-1 }
spec: { podCIDRs: [10.244.1.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.168.50.1 }] }
---
apiVersion: v1
kind: Service
metadata: { name: empty, namespace: default }
spec:
  type: NodePort
  clusterIPs: [10.96.0.20]
  ports: [{ port: 80, nodePort: 30020 }]
`,
);

afterAll(removeAll);

it('runs the agent in the node until it is stopped; its rules stay', async () => {
  const client = lab.addClient('outside');
  const agent = await node.startAgent({ manifests, flags: ['--log-level', 'debug'] });
  expect(await agent.metrics()).toMatch(/^kubeproxy_sync_proxy_rules_last_timestamp_seconds/m);
  expect(agent.logs().length).toBeGreaterThan(0);
  expect(await node.connect({ ip: '10.96.0.20', port: 80 })).toMatchObject({ kind: 'refused' });
  expect(await client.connect({ ip: node.ip(), port: 30020 })).toMatchObject({ kind: 'refused' });
  expect(await agent.stop()).toBe(0);
  await expect(agent.metrics()).rejects.toThrow(/ECONNREFUSED/);
  expect(await node.connect({ ip: '10.96.0.20', port: 80 })).toMatchObject({ kind: 'refused' });
});

it('can be killed', async () => {
  const agent = await node.startAgent({ manifests });
  await agent.kill();
  await expect(agent.metrics()).rejects.toThrow(/ECONNREFUSED/);
});

it('shows the log of an agent that does not start', async () => {
  await expect(node.startAgent({ manifests, flags: ['--proxy-mode', 'pigeon'] })).rejects.toThrow(
    /ended with status 1 at its start:[\s\S]*pigeon/,
  );
});
