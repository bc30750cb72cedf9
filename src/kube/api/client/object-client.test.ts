import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { apiNode, FakeApiServer } from '../../../../test/fakes/api-server/index.ts';
import type { ApiClient } from './api-client.ts';
import type { ObjectResource } from './api-object.ts';
import { createApiClient } from './http-client.ts';
import { ObjectClient } from './object-client.ts';
import { isRefused } from './object-error.ts';
import type { ApiObservation } from './observation.ts';

const LEASES: ObjectResource = {
  name: 'leases',
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  namespaced: true,
};
const NODES: ObjectResource = { name: 'nodes', group: '', version: 'v1', kind: 'Node', namespaced: false };
const AGENT = { name: 'agent', namespace: 'kube-system' } as const;

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-object-client-'));
const { signal } = new AbortController();
let server: FakeApiServer;
let client: ApiClient;
let observed: ApiObservation[];
let leases: ObjectClient;
let nodes: ObjectClient;

beforeEach(async () => {
  server = new FakeApiServer();
  await server.start();
  const kubeconfig = join(folder, 'kubeconfig');
  server.writeKubeconfig(kubeconfig);
  observed = [];
  client = await createApiClient({ kubeconfig, userAgent: 'test', observe: (o) => observed.push(o) });
  leases = clientOf(LEASES);
  nodes = clientOf(NODES);
});

afterEach(async () => {
  client.close();
  await server.stop();
});

afterAll(() => rmSync(folder, { recursive: true }));

function clientOf(resource: ObjectResource): ObjectClient {
  return new ObjectClient({ client, resource, fieldManager: 'nodeplane' });
}

const createAgent = () => leases.create({ metadata: AGENT, spec: { holderIdentity: 'a' } }, signal);

/** What was asked of the server last: method and path with query. */
const lastRequest = () => `${server.requests.at(-1)!.method} ${server.requests.at(-1)!.url}`;

const path = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';

describe('objects', () => {
  it('are created, read, patched and deleted', async () => {
    const created = await createAgent();
    expect(lastRequest()).toBe(`POST ${path}?fieldManager=nodeplane`);
    expect(server.requests.at(-1)!.headers['content-type']).toBe('application/json');
    expect(server.objects('Lease')).toMatchObject([
      { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: AGENT, spec: { holderIdentity: 'a' } },
    ]);
    expect(await leases.get(AGENT, signal)).toEqual(created);

    const patched = await leases.mergePatch(AGENT, { spec: { holderIdentity: 'b' } }, signal);
    expect(lastRequest()).toBe(`PATCH ${path}/agent?fieldManager=nodeplane`);
    expect(patched).toMatchObject({ metadata: { uid: created.metadata.uid }, spec: { holderIdentity: 'b' } });
    expect(patched.metadata.resourceVersion).not.toBe(created.metadata.resourceVersion);

    await leases.delete(AGENT, signal);
    expect(lastRequest()).toBe(`DELETE ${path}/agent`);
    expect(server.objects('Lease')).toEqual([]);
  });

  it('without a namespace, of the core group, are patched: null removes, the rest is merged', async () => {
    server.apply(apiNode('node-1'));
    const before = await nodes.get({ name: 'node-1' }, signal);
    const annotations = { 'example.com/a': '1', 'example.com/b': '2' };
    await nodes.mergePatch({ name: 'node-1' }, { metadata: { annotations } }, signal);
    expect(lastRequest()).toBe('PATCH /api/v1/nodes/node-1?fieldManager=nodeplane');
    expect(server.requests.at(-1)!.headers['content-type']).toBe('application/merge-patch+json');
    const patch = { metadata: { annotations: { 'example.com/a': null } } };
    const after = await nodes.mergePatch({ name: 'node-1' }, patch, signal);
    expect(after.metadata.annotations).toEqual({ 'example.com/b': '2' });
    expect(after.metadata.labels).toEqual(before.metadata.labels);
    expect(after.spec).toEqual(before.spec);
  });

  it('are seen by watches when clients write them', async () => {
    const { version } = server.history;
    const { metadata } = await createAgent();
    await leases.mergePatch(metadata, { spec: { holderIdentity: 'b' } }, signal);
    // Nothing changes: no event.
    await leases.mergePatch(AGENT, { spec: { holderIdentity: 'b' } }, signal);
    await leases.delete(AGENT, signal);
    const query = { watch: 'true', resourceVersion: String(version), timeoutSeconds: '0' };
    const { body } = await client.send({ method: 'GET', path, query, signal });
    let text = '';
    for await (const chunk of body) text += Buffer.from(chunk).toString('utf8');
    const types = text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).type);
    expect(types).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
  });
});

describe('a compare-and-swap', () => {
  it('refuses a version or an object that is no longer there', async () => {
    const old = await createAgent();
    await leases.mergePatch(AGENT, { spec: { holderIdentity: 'b' } }, signal);
    const conflict = { kind: 'conflict', status: 409, reason: 'Conflict' };
    await expect(leases.mergePatch(old.metadata, { spec: { holderIdentity: 'c' } }, signal)).rejects.toMatchObject(
      conflict,
    );
    await expect(leases.delete(old.metadata, signal)).rejects.toMatchObject(conflict);

    const { metadata } = await leases.get(AGENT, signal);
    await leases.delete(metadata, signal);
    const { name, namespace, uid } = metadata;
    await createAgent();
    await expect(leases.delete({ name, namespace: namespace!, uid }, signal)).rejects.toMatchObject(conflict);
    expect(server.objects('Lease')).toMatchObject([{ spec: { holderIdentity: 'a' } }]);
  });

  it('is won by one of many', async () => {
    const seen = await createAgent();
    const rivals = ['b', 'c', 'd', 'e'].map((holder) =>
      leases.mergePatch(seen.metadata, { spec: { holderIdentity: holder } }, signal),
    );
    const outcomes = await Promise.allSettled(rivals);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const losers = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    expect(losers.every((error) => isRefused(error, 'conflict'))).toBe(true);
  });
});

describe('a refusal names operation, object, and the server’s reason', () => {
  it('when the object exists, or does not', async () => {
    await createAgent();
    await expect(createAgent()).rejects.toMatchObject({
      code: 'ERR_API',
      kind: 'alreadyExists',
      operation: 'create',
      object: 'Lease "kube-system/agent"',
      message: `Cannot create Lease "kube-system/agent" (POST ${server.url}${path}): the API server answered 409: leases.coordination.k8s.io "agent" already exists`,
    });
    await expect(nodes.get({ name: 'none' }, signal)).rejects.toMatchObject({
      kind: 'notFound',
      message: `Cannot get Node "none" (GET ${server.url}/api/v1/nodes/none): the API server answered 404: nodes "none" not found`,
    });
    for (const operation of [
      nodes.mergePatch({ name: 'none' }, { spec: {} }, signal),
      nodes.delete({ name: 'none' }, signal),
    ]) {
      await expect(operation).rejects.toMatchObject({ kind: 'notFound' });
    }
  });

  it('when a field is wrong', async () => {
    await createAgent();
    await expect(leases.mergePatch(AGENT, { spec: { leaseDurationSeconds: 0 } }, signal)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0$/),
    });
  });

  it.each(['get', 'create', 'patch', 'delete'])('when RBAC forbids to %s', async (operation) => {
    await createAgent();
    server.misbehave.rules = [];
    const operations: Record<string, () => Promise<unknown>> = {
      get: () => leases.get(AGENT, signal),
      create: () => leases.create({ metadata: AGENT }, signal),
      patch: () => leases.mergePatch(AGENT, {}, signal),
      delete: () => leases.delete(AGENT, signal),
    };
    const needed = `; this needs the RBAC verb "${operation}" on resource "leases" of API group "coordination.k8s.io" in namespace "kube-system"`;
    await expect(operations[operation]!()).rejects.toMatchObject({
      kind: 'forbidden',
      operation,
      message: expect.stringContaining(needed),
    });
  });

  it.each([
    [410, 'gone'],
    [418, 'other'],
    [429, 'unavailable'],
    [500, 'unavailable'],
    [503, 'unavailable'],
  ])('when it answers %i, with the time it asks to wait', async (status, kind) => {
    server.misbehave.answers.push({ status, retryAfterSeconds: 7 });
    await expect(leases.get(AGENT, signal)).rejects.toMatchObject({ kind, status, retryAfterMs: 7000 });
    expect(server.requests).toHaveLength(1);
  });
});

it('a write whose answer is lost is an error without a status, and observed as one', async () => {
  server.misbehave.lostAnswers = 1;
  const failure = await createAgent().catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'ERR_API' });
  expect(isRefused(failure, 'conflict', 'unavailable', 'other')).toBe(false);
  expect(observed).toMatchObject([{ kind: 'request', method: 'POST', code: '<error>' }]);
  expect(server.objects('Lease')).toHaveLength(1);
});

it.each([
  ['[]', 'expected an object with "metadata.name"'],
  ['{"metadata":{"name":"agent","uid":"1"}}', 'expected an object with'],
  ['<html>', 'is not valid JSON'],
  [JSON.stringify({ text: 'x'.repeat(2000) }), 'it is longer than 1000 bytes'],
])('the answer %s is unreadable', async (body, reason) => {
  server.misbehave.answers.push({ status: 200, body });
  const small = new ObjectClient({ client, resource: LEASES, fieldManager: 'x', largest: 1000 });
  await expect(small.get(AGENT, signal)).rejects.toMatchObject({
    code: 'ERR_API',
    message: expect.stringMatching(/^Cannot read the API server's answer to "get" of Lease "kube-system\/agent": /),
  });
  server.misbehave.answers.push({ status: 200, body });
  await expect(small.get(AGENT, signal)).rejects.toThrow(reason);
});

it.each([
  [{ name: '..', namespace: 'a' }, '".." is no name'],
  [{ name: 'x/y', namespace: 'a' }, '"x/y" is no name'],
  [{ name: '', namespace: 'a' }, '"" is no name'],
  [{ name: 'x', namespace: '../..' }, '"../.." is no name'],
  [{ name: 'x' }, 'no namespace is given'],
])('a name never leads to another path: %j', async (name, reason) => {
  await expect(leases.get(name, signal)).rejects.toThrow(reason);
  await expect(nodes.get({ name: 'x', namespace: 'a' }, signal)).rejects.toThrow('its kind has no namespaces');
  expect(server.requests).toEqual([]);
});
