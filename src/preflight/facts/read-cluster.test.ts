import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { apiNode, apiService, FakeApiServer } from '../../../test/fakes/api-server/index.ts';
import { preflightWorld } from '../../../test/fakes/preflight-world.ts';
import { type ApiClient, ApiSource, createApiClient } from '../../kube/index.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import { readCluster } from './read-cluster.ts';

let server: FakeApiServer;
let client: ApiClient;
let cluster: ClusterFacts;
let factsWithin: (patienceMs: number) => ClusterFacts;

beforeEach(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'nodeplane-preflight-'));
  server = new FakeApiServer();
  await server.start();
  const kubeconfig = join(folder, 'kubeconfig');
  server.writeKubeconfig(kubeconfig);
  client = await createApiClient({ kubeconfig, userAgent: 'test' });
  const made = client;
  const { config } = await preflightWorld({ flags: [`--kubeconfig=${kubeconfig}`] });
  factsWithin = (patienceMs) =>
    readCluster({ config, client, source: (resources) => new ApiSource({ client: made, resources }), patienceMs });
  cluster = factsWithin(15_000);
  return async () => {
    rmSync(folder, { recursive: true });
  };
});

afterEach(async () => {
  client.close();
  await server.stop();
});

it('reads Services and the Node once, and says where from', async () => {
  server.apply(apiNode('node-1'), apiService('shop/web'), apiService('shop/api'));
  expect(cluster.origin).toMatchObject({ kind: 'api', server: server.url, host: '127.0.0.1', by: '--kubeconfig' });
  const { node, services, problems } = await cluster.objects();
  expect(node?.metadata.name).toBe('node-1');
  expect(services.map(({ metadata }) => metadata.name)).toEqual(['api', 'web']);
  expect(problems).toEqual([]);
  const requests = server.requests.length;
  await cluster.objects();
  expect(server.requests).toHaveLength(requests);
});

it('tells version and clock, and what kubeadm is told', async () => {
  server.misbehave.answers.push({ status: 200, body: '{"gitVersion":"v1.36.2"}' });
  expect(await cluster.server()).toEqual({ version: 'v1.36.2', aheadSeconds: expect.closeTo(0, -1) });
  server.misbehave.answers.push({ status: 200, body: '{"data":{"ClusterConfiguration":"proxy: {}"}}' });
  expect(await cluster.kubeadmConfig()).toBe('proxy: {}');
  server.misbehave.answers.push({ status: 404 });
  expect(await cluster.kubeadmConfig()).toBeUndefined();
  server.misbehave.answers.push({ status: 403 });
  await expect(cluster.kubeadmConfig()).rejects.toMatchObject({ status: 403 });
});

it('gives up on a server that says nothing', async () => {
  server.misbehave.stallAnswers = true;
  const { objects, server: serverFacts, kubeadmConfig } = factsWithin(200);
  for (const ask of [objects, serverFacts, kubeadmConfig]) {
    await expect(ask()).rejects.toMatchObject({ code: 'ERR_API', message: expect.stringContaining('no answer') });
  }
});
