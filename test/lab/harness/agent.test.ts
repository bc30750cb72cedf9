import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { makeService } from '../../fakes/service-objects.ts';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { createLab, removeAll } from '../lab.ts';

const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
const manifests = join(lab.folder, 'manifests');
mkdirSync(manifests);
const service = makeService('default/empty', {
  type: 'NodePort',
  clusterIP: '10.96.0.20',
  ports: [{ port: 80, nodePort: 30020 }],
});
saveManifest(manifests, 'cluster.yaml', manifestOf(nodeObject(node), service));

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
