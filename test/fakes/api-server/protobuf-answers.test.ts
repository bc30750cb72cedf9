import https from 'node:https';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { apiNode, apiService, apiServiceCidr, apiSlice, FakeApiServer } from './index.ts';
import { decodeMessage } from './protobuf/index.ts';

// How the fake API server writes and negotiates protobuf. That upstream reads it too is for test/lab/protobuf.

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const SERVICES = '/api/v1/services';
const BLOCKS = '/apis/nodeplane.io/v1alpha1/podcidrblocks';

let api: FakeApiServer;

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  readonly body: Buffer;
}

/** Gives up the request when so many bytes have come. @param bytes @default it ends by itself */
function get(path: string, accept: string | undefined = PROTOBUF, bytes = Number.POSITIVE_INFINITY): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { ca: api.ca, agent: false, headers: accept === '' ? {} : { accept } };
    const request = https.get(`${api.url}${path}`, options, (response) => {
      let body = Buffer.alloc(0);
      const { statusCode: status = 0, headers } = response;
      const end = () => resolve({ status, type: headers['content-type'], body });
      response.on('data', (chunk: Buffer) => {
        body = Buffer.concat([body, chunk]);
        if (body.length >= bytes) response.destroy();
      });
      response.on('error', end).on('close', end);
    });
    request.on('error', reject);
  });
}

/** What is in an envelope. */
function open(bytes: Uint8Array, message: string): unknown {
  expect(Buffer.from(bytes.subarray(0, 4)).toString('latin1')).toBe('k8s\0');
  const { typeMeta, raw } = decodeMessage('meta.Unknown', bytes.subarray(4)) as { typeMeta: object; raw: Uint8Array };
  return { ...typeMeta, ...decodeMessage(message, raw) };
}

interface Frame {
  readonly type: string;
  readonly object: { readonly raw: Uint8Array };
}

/** The whole frames of a watch. */
function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at + 4 <= bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at);
    if (end > bytes.length) break;
    frames.push(decodeMessage('meta.WatchEvent', bytes.subarray(at + 4, end)) as unknown as Frame);
    at = end;
  }
  return frames;
}

beforeAll(async () => {
  api = new FakeApiServer();
  await api.start();
});
beforeEach(() => {
  for (const kind of ['Service', 'EndpointSlice', 'Node', 'ServiceCIDR']) {
    for (const { metadata } of api.objects(kind)) {
      api.delete(kind, metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`);
    }
  }
  api.speaks = 'both';
  api.requests.length = 0;
});
afterAll(() => api.stop());

it.each([
  ['both', '', SERVICES, 'application/json'],
  ['both', '*/*', SERVICES, 'application/json'],
  ['both', 'application/json, */*', SERVICES, 'application/json'],
  ['both', PROTOBUF, SERVICES, PROTOBUF],
  ['both', `${PROTOBUF},application/json`, SERVICES, PROTOBUF],
  ['both', `application/json,${PROTOBUF}`, SERVICES, 'application/json'],
  ['both', `application/json;q=0.5,${PROTOBUF};q=0.9`, SERVICES, PROTOBUF],
  ['both', `application/cbor,${PROTOBUF},*/*`, SERVICES, PROTOBUF],
  ['both', 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json', SERVICES, 'application/json'],
  ['both', `${PROTOBUF},application/json`, BLOCKS, 'application/json'],
  ['both', PROTOBUF, BLOCKS, 406],
  ['both', 'application/cbor', SERVICES, 406],
  ['json', `${PROTOBUF},application/json`, SERVICES, 'application/json'],
  ['json', PROTOBUF, SERVICES, 406],
  ['protobuf', 'application/json, */*', SERVICES, PROTOBUF],
  ['protobuf', 'application/json', SERVICES, 'application/json'],
] as const)('a server that speaks %s answers Accept: %s at %s with %s', async (speaks, accept, path, expected) => {
  api.speaks = speaks;
  const { status, type } = await get(path, accept);
  expect(status === 200 ? type : status).toBe(expected);
  expect(api.requests).toMatchObject([{ type }]);
});

it('writes the bytes that upstream writes', async () => {
  api.apply({ ...apiServiceCidr('a', ['::/1']), status: {} });
  const { body } = await get('/apis/networking.k8s.io/v1/servicecidrs/a');
  const { metadata } = api.objects('ServiceCIDR')[0]!;
  const text = (tag: number, value: string) => [tag, value.length, ...Buffer.from(value)];
  const envelope = [
    ...Buffer.from('k8s\0'),
    0x0a,
    35,
    ...text(0x0a, 'networking.k8s.io/v1'),
    ...text(0x12, 'ServiceCIDR'),
  ];
  expect([...body.subarray(0, envelope.length)]).toEqual(envelope);
  const ofMetadata = [
    ...text(0x0a, 'a'),
    ...[0x12, 0, 0x1a, 0, 0x22, 0],
    ...text(0x2a, metadata.uid!),
    ...text(0x32, metadata.resourceVersion!),
    ...[0x38, 0],
    // 2025-01-01T00:00:00Z, without a fraction.
    ...[0x42, 8, 0x08, 0x80, 0x8b, 0xd2, 0xbb, 0x06, 0x10, 0],
  ];
  expect(body.toString('hex')).toContain(Buffer.from(ofMetadata).toString('hex'));
  // The specification, the empty status, and the envelope's two empty strings.
  const end = [0x12, 6, ...text(0x0a, '::/1'), 0x1a, 0, 0x1a, 0, 0x22, 0];
  expect([...body.subarray(-end.length)]).toEqual(end);
});

it('gives lists, page by page', async () => {
  api.apply(apiService('demo/a'), apiService('demo/b'), apiService('demo/c'));
  const first = open((await get(`${SERVICES}?limit=2`)).body, 'core.ServiceList') as {
    metadata: { continue: string; resourceVersion: string };
  };
  expect(first).toMatchObject({
    apiVersion: 'v1',
    kind: 'ServiceList',
    metadata: { resourceVersion: String(api.history.version) },
    items: [{ metadata: { name: 'a', namespace: 'demo' } }, { metadata: { name: 'b' } }],
  });
  const rest = await get(`${SERVICES}?limit=2&continue=${first.metadata.continue}`);
  expect(open(rest.body, 'core.ServiceList')).toMatchObject({ metadata: { continue: '' }, items: [{ spec: {} }] });
});

it('gives objects in all their forms: times, amounts, ports by name', async () => {
  const renewTime = '2026-01-02T03:04:05.123456Z';
  api.apply(
    { ...apiNode('n'), status: { capacity: { cpu: '4' } } },
    apiService('demo/a', { spec: { ports: [{ port: 80, targetPort: 'http' }] } }),
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'l', namespace: 'demo' },
      spec: { renewTime },
    },
  );
  expect(open((await get('/api/v1/nodes/n')).body, 'core.Node')).toMatchObject({
    metadata: { creationTimestamp: { seconds: 1_735_689_600, nanos: 0 } },
    status: { capacity: { cpu: { string: '4' } } },
  });
  expect(open((await get('/api/v1/namespaces/demo/services/a')).body, 'core.Service')).toMatchObject({
    spec: { ports: [{ name: '', port: 80, targetPort: { type: 1, intVal: 0, strVal: 'http' }, nodePort: 0 }] },
  });
  const lease = await get('/apis/coordination.k8s.io/v1/namespaces/demo/leases/l');
  expect(open(lease.body, 'coordination.Lease')).toMatchObject({
    spec: { renewTime: { seconds: Date.parse('2026-01-02T03:04:05Z') / 1000, nanos: 123_456_000 } },
  });
});

it('says no in protobuf', async () => {
  const { status, type, body } = await get('/api/v1/nodes/missing');
  expect({ status, type }).toEqual({ status: 404, type: PROTOBUF });
  expect(open(body, 'meta.Status')).toMatchObject({ kind: 'Status', code: 404, message: 'nodes "missing" not found' });
});

it('sends watches in frames: objects, a bookmark, an error, and what no server sends', async () => {
  api.apply(apiSlice('demo/a', ['10.0.0.1']));
  const query = 'watch=true&sendInitialEvents=true&allowWatchBookmarks=true';
  const answer = get(`/apis/discovery.k8s.io/v1/endpointslices?${query}`);
  await expect.poll(() => api.watches().length).toBe(1);
  const watch = api.watches()[0]!;
  api.delete('EndpointSlice', 'demo/a-a');
  watch.event('RENAMED', api.history.put(apiSlice('demo/b', [])));
  watch.bookmark({ resourceVersion: '' });
  watch.error({ code: 410, message: 'too old' });
  const { type, body } = await answer;
  expect(type).toBe(`${PROTOBUF};stream=watch`);
  const frames = framesOf(body);
  expect(frames.map((frame) => frame.type).join(' ')).toBe('ADDED BOOKMARK DELETED ADDED RENAMED BOOKMARK ERROR');
  const slices = frames.slice(0, -1).map(({ object }) => open(object.raw, 'discovery.EndpointSlice'));
  expect(slices).toMatchObject([
    { kind: 'EndpointSlice', metadata: { name: 'a-a' }, endpoints: [{ addresses: ['10.0.0.1'] }] },
    { metadata: { annotations: { 'k8s.io/initial-events-end': 'true' }, creationTimestamp: {} } },
    { metadata: { name: 'a-a' } },
    { metadata: { name: 'b-a' } },
    { metadata: { name: 'b-a' } },
    { metadata: { resourceVersion: '', name: '' } },
  ]);
  expect(open(frames.at(-1)!.object.raw, 'meta.Status')).toMatchObject({ code: 410, message: 'too old' });
});

it('breaks a watch in the middle of a frame, and sends frames that hold nothing to read', async () => {
  const broken = get(`${SERVICES}?watch=true`);
  await expect.poll(() => api.watches('services').length).toBe(1);
  const first = api.watches('services')[0];
  first?.reset(true);
  const { body } = await broken;
  expect(framesOf(body)).toEqual([]);
  expect(body.readUInt32BE(0)).toBeGreaterThan(body.length);

  const garbled = get(`${SERVICES}?watch=true`, PROTOBUF, 1);
  const second = () => api.watches('services').find((watch) => watch !== first);
  await expect.poll(second).toBeDefined();
  second()?.garbage();
  const garbage = (await garbled).body;
  expect(garbage.length).toBe(4 + garbage.readUInt32BE(0));
  expect(() => framesOf(garbage)).toThrow();
});

it('tells of a field that its messages lack, instead of leaving it out', async () => {
  api.apply({ ...apiNode('n'), spec: { podCIDR: '10.0.0.0/24', invented: true } });
  const { status, body } = await get('/api/v1/nodes');
  expect(status).toBe(500);
  expect(JSON.parse(body.toString()).message).toBe(
    'Node.spec: the fake API server\'s message .core.NodeSpec has no field "invented"',
  );
});
