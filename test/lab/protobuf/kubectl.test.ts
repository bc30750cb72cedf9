import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type ApiObject, FakeApiServer } from '../../fakes/api-server/index.ts';
import { WHOLE_NODE, WHOLE_SERVICE, WHOLE_SERVICE_CIDR, WHOLE_SLICE } from './whole-objects.ts';

// The fake API server's protobuf, as client-go reads it: what kubectl shows came through upstream's own decoder.

const KUBECTL = fileURLToPath(new URL('../../../.cache/kubectl/kubectl', import.meta.url));
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

const folder = mkdtempSync(join(tmpdir(), 'nplab-kubectl-'));
const kubeconfig = join(folder, 'kubeconfig');
const api = new FakeApiServer();

interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs kubectl in the namespace `demo`. */
function kubectl(...args: readonly string[]): Promise<Outcome> {
  const all = ['--kubeconfig', kubeconfig, '--cache-dir', join(folder, 'cache'), '--namespace', 'demo', ...args];
  return new Promise((resolve) => {
    const child = execFile(KUBECTL, all, { env: { HOME: folder, TZ: 'UTC' } }, (_, stdout, stderr) => {
      resolve({ status: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

/** What `kubectl describe` shows, with single blanks. */
async function describe(kind: string, name: string): Promise<string> {
  const { status, stdout, stderr } = await kubectl('describe', kind, name);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.replaceAll(/ +/g, ' ');
}

const requestsFor = (resource: string) => api.requests.filter((request) => request.resource === resource);

beforeAll(async () => {
  await api.start();
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'secret');
  api.writeKubeconfig(kubeconfig, { tokenFile });
  api.apply(WHOLE_SERVICE, WHOLE_SLICE, WHOLE_NODE, WHOLE_SERVICE_CIDR);
});
beforeEach(() => {
  api.speaks = 'both';
  api.misbehave.rules = undefined;
  api.requests.length = 0;
});
afterAll(async () => {
  await api.stop();
  rmSync(folder, { recursive: true });
});

it('kubectl asks for protobuf by itself, and describes a Service and the endpoints of its list', async () => {
  const text = await describe('service', 'web');
  expect(requestsFor('endpointslices')).toMatchObject([
    { verb: 'list', type: PROTOBUF, headers: { accept: `${PROTOBUF},application/json` } },
  ]);
  for (const line of [
    'Labels: app=web\n tier=front',
    'Annotations: example.test/note: grüße',
    'Type: LoadBalancer',
    'IPs: 10.96.0.10,fd00:96::10',
    'LoadBalancer Ingress: 198.51.100.7 (Proxy), lb.example.test',
    'TargetPort: dns-port/UDP',
    'NodePort: http 30080/TCP',
    'Endpoints: 10.244.1.7:8080',
    'Session Affinity: ClientIP',
    'HealthCheck NodePort: 31000',
  ]) {
    expect(text).toContain(line);
  }
});

it('describes an EndpointSlice, with what is missing in it told apart from what is empty', async () => {
  const text = await describe('endpointslice', 'web-a');
  // The first look is at what it takes as JSON alone.
  expect(requestsFor('endpointslices').map(({ type }) => type)).toEqual(['application/json', PROTOBUF]);
  for (const line of [
    'http 8080 TCP',
    '- Addresses: 10.244.1.7\n Conditions:\n Ready: true\n Hostname: web-0\n TargetRef: Pod/web-0\n NodeName: node-1\n Zone: zone-a',
    '- Addresses: 10.244.2.9\n Conditions:\n Ready: false\n Hostname: <unset>\n NodeName: <unset>\n Zone: <unset>',
    '- Addresses: 10.244.3.9\n Conditions:\n Ready: <unset>',
  ]) {
    expect(text).toContain(line);
  }
});

it('describes a Node and a ServiceCIDR', async () => {
  const node = await describe('node', 'node-1');
  for (const line of [
    'CreationTimestamp: Wed, 01 Jan 2025 00:00:00 +0000',
    'Ready True Fri, 02 Jan 2026 03:09:05 +0000 Fri, 02 Jan 2026 03:04:05 +0000 KubeletReady',
    'Taints: node.kubernetes.io/unschedulable=v:NoSchedule',
    'Unschedulable: true',
    'InternalIP: 192.0.2.1',
    'Allocatable:\n cpu: 3920m\n memory: 7Gi\n pods: 110',
    'PodCIDRs: 10.244.1.0/24,fd00:244:1::/64',
    'ProviderID: example://node-1',
  ]) {
    expect(node).toContain(line);
  }
  const cidr = await describe('servicecidr', 'kubernetes');
  expect(cidr).toContain('CIDRs: 10.96.0.0/16, fd00:96::/112');
  expect(cidr).toMatch(/Ready True/);
});

// Commands that read an object in its own type, change something in it, and show all of it.
it.each([
  ['Service', ['set', 'selector', 'service', 'web', 'app=other'], withSelector],
  ['Node', ['taint', 'node', 'node-1', 'node.kubernetes.io/unschedulable-'], withoutTaints],
] as const)('a whole %s comes through as it was', async (kind, args, expected) => {
  api.speaks = 'protobuf';
  const { stdout, stderr } = await kubectl(...args, '--dry-run=client', '-o', 'json', '--show-managed-fields');
  expect(stderr).toBe('');
  expect(new Set(requestsFor(`${kind.toLowerCase()}s`).map(({ type }) => type))).toEqual(new Set([PROTOBUF]));
  expect(JSON.parse(stdout)).toEqual(expected(api.objects(kind)[0]!));
});

function withSelector({ spec, ...object }: ApiObject): unknown {
  return { ...object, spec: { ...(spec as object), selector: { app: 'other' } } };
}

function withoutTaints({ spec, ...object }: ApiObject): unknown {
  const { taints: _, ...rest } = spec as { taints: unknown };
  return { ...object, spec: rest };
}

it('reads the events of a watch', async () => {
  const logs = kubectl('logs', 'service/web', '--container', 'none', '--pod-running-timeout=60s');
  await expect
    .poll(() => api.watches('pods').map(({ format }) => format.watchType))
    .toEqual([`${PROTOBUF};stream=watch`]);
  api.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-7', namespace: 'demo', labels: { app: 'web' } } });
  expect((await logs).stderr).toContain('container none is not valid for pod web-7');
});

it('reads why a request is refused', async () => {
  api.misbehave.rules = [{ apiGroups: [''], resources: ['services', 'nodes'], verbs: ['get'] }];
  const { stderr } = await kubectl('logs', 'service/web');
  expect(stderr).toContain('Error from server (Forbidden): User "test" cannot list resource "pods" in API group ""');
});
