import { decodeObject, KINDS, type KubeKind, watchEvents } from '../src/kube/index.ts';
import { type ApiObject, apiService, apiSlice, JSON_FORMAT, PROTOBUF_FORMAT } from '../test/fakes/api-server/index.ts';
import { sampleAddress } from './cluster.ts';
import { type Figure, inTurns, ratioAtMost, report } from './report/index.ts';

const ROUNDS = 20;
const OBJECTS = 2000;
const ENDPOINTS = 10;
/** As much as a socket delivers at once. */
const CHUNK_BYTES = 16_384;

/**
 * What it costs to read the events of a watch in protobuf against JSON, to the object that nodeplane keeps: Services and their
 * slices of ten endpoints, as controllers leave them.
 */
export async function benchReadApi(): Promise<void> {
  await compare('Service', (n) => apiService(`bench/service-${n}`, { spec: { clusterIP: sampleAddress(96, n) } }));
  await compare('EndpointSlice', (n) =>
    apiSlice(
      `bench/service-${n}`,
      Array.from({ length: ENDPOINTS }, (_, index) => `10.244.${n >> 3}.${((n & 7) << 4) + index}`),
    ),
  );
}

async function compare(kind: 'Service' | 'EndpointSlice', object: (n: number) => ApiObject): Promise<void> {
  const objects = Array.from({ length: OBJECTS }, (_, n) => asStored(object(n), n));
  const [json, protobuf] = [JSON_FORMAT, PROTOBUF_FORMAT].map((format) => ({
    contentType: format.watchType,
    bytes: Buffer.concat(objects.map((each) => format.event('ADDED', each))),
    times: [] as number[],
  }));
  for (let round = 0; round < ROUNDS; round++) {
    for (const form of [json!, protobuf!]) form.times.push(await timeOfReading(kind, form));
  }
  const figures: Figure[] = [
    {
      what: 'processor time to read an object',
      unit: 'us',
      ...inTurns(protobuf!.times, json!.times),
      peerName: 'in JSON',
      target: ratioAtMost(1),
    },
    {
      what: 'bytes of its event',
      unit: 'bytes',
      ours: Math.round(protobuf!.bytes.length / OBJECTS),
      peer: Math.round(json!.bytes.length / OBJECTS),
      peerName: 'in JSON',
      target: ratioAtMost(0.7),
    },
  ];
  report(`read-api, ${kind}`, figures);
}

/** With what an API server adds to an object: who it is, and which of its fields were written by whom. */
function asStored(object: ApiObject, n: number): ApiObject {
  return {
    ...object,
    metadata: {
      ...object.metadata,
      uid: `6f1c9b3e-0000-4000-8000-${String(n).padStart(12, '0')}`,
      resourceVersion: String(100_000 + n),
      creationTimestamp: '2026-01-01T00:00:00Z',
      managedFields: [
        {
          manager: 'kube-controller-manager',
          operation: 'Update',
          apiVersion: 'v1',
          time: '2026-01-01T00:00:00Z',
          fieldsType: 'FieldsV1',
          fieldsV1: {
            'f:metadata': {
              'f:labels': { '.': {}, 'f:kubernetes.io/service-name': {} },
              'f:ownerReferences': { '.': {} },
            },
            'f:spec': {
              'f:clusterIP': {},
              'f:internalTrafficPolicy': {},
              'f:ports': {},
              'f:selector': {},
              'f:type': {},
            },
          },
        },
      ],
    },
  };
}

/** Of one object, in microseconds. */
async function timeOfReading(
  kind: KubeKind,
  { contentType, bytes }: { readonly contentType: string; readonly bytes: Buffer },
): Promise<number> {
  const before = process.cpuUsage();
  for await (const event of watchEvents({ body: chunks(bytes), contentType }, KINDS[kind].message)) {
    const { problems } = decodeObject(KINDS[kind], 'object' in event ? event.object : undefined);
    if (problems) throw new Error(`Cannot read ${kind}: ${JSON.stringify(problems)}`);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / OBJECTS;
}

async function* chunks(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
}
