import fc from 'fast-check';
import { expect, it } from 'vitest';
import { encodeObject, type TypedObject } from '../../../../test/fakes/api-server/protobuf/index.ts';
import { decodeObject } from '../kind.ts';
import { KINDS } from '../kinds.ts';
import type { KubeKind } from '../types.ts';
import { readObject } from './envelope.ts';

// What is read of an object in protobuf is what is read of it in JSON. The bytes are made by protobufjs, from descriptions that
// test/lab holds against kubectl.

type Builtin = Exclude<KubeKind, 'PodCIDRBlock'>;

const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$/);
const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 50 });
const some = <T extends Record<string, fc.Arbitrary<unknown>>>(fields: T) => fc.record(fields, { requiredKeys: [] });
/** What is empty is left out of JSON. */
const list = <T>(items: fc.Arbitrary<T>) => fc.array(items, { minLength: 1, maxLength: 3 });
const time = fc
  .date({ min: new Date('1971-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
  .map((date) => `${date.toISOString().slice(0, 19)}Z`);
const ip = fc.ipV4();
const port = fc.integer({ min: 1, max: 70_000 });
const map = fc.dictionary(
  fc.constantFrom(
    'kubernetes.io/service-name',
    'topology.kubernetes.io/zone',
    'service.kubernetes.io/headless',
    'nodeplane.io/ipvs-scheduler',
    'endpoints.kubernetes.io/last-change-trigger-time',
    'app',
  ),
  fc.oneof(text, fc.constant('')),
  { minKeys: 1 },
);

const metadata = fc.record(
  {
    name,
    namespace: name,
    uid: text,
    resourceVersion: text,
    creationTimestamp: time,
    deletionTimestamp: time,
    labels: map,
    annotations: map,
    finalizers: list(text),
    managedFields: list(some({ manager: text, operation: text, fieldsV1: fc.constant({ 'f:spec': {} }) })),
  },
  { requiredKeys: ['name'] },
);

const protocol = fc.constantFrom('TCP', 'UDP', 'SCTP', 'QUIC');

const OBJECTS: { readonly [K in Builtin]: fc.Arbitrary<object> } = {
  Service: some({
    metadata,
    spec: some({
      type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName', 'Other'),
      clusterIP: fc.oneof(ip, fc.constant('None')),
      clusterIPs: list(ip),
      ipFamilies: list(fc.constantFrom('IPv4', 'IPv6')),
      ports: list(
        fc.record(
          { name, protocol, port, nodePort: port, targetPort: fc.oneof(port, name), appProtocol: text },
          { requiredKeys: ['port'] },
        ),
      ),
      selector: fc.dictionary(name, text, { minKeys: 1 }),
      externalIPs: list(text),
      externalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
      internalTrafficPolicy: fc.constantFrom('Cluster', 'Local', ''),
      sessionAffinity: fc.constantFrom('None', 'ClientIP'),
      sessionAffinityConfig: fc.record({ clientIP: fc.record({ timeoutSeconds: fc.nat(90_000) }) }),
      loadBalancerSourceRanges: list(text),
      healthCheckNodePort: port,
      publishNotReadyAddresses: fc.constant(true),
    }),
    status: fc.record({
      loadBalancer: some({ ingress: list(some({ ip, hostname: text, ipMode: fc.constantFrom('VIP', 'Proxy') })) }),
    }),
  }),
  EndpointSlice: fc.record(
    {
      metadata,
      addressType: fc.constantFrom('IPv4', 'IPv6', 'FQDN', 'Other'),
      endpoints: list(
        fc.record(
          {
            addresses: list(ip),
            conditions: some({ ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() }),
            hostname: text,
            nodeName: fc.oneof(name, fc.constant('')),
            zone: text,
            targetRef: some({ kind: fc.constantFrom('Pod', 'Node'), namespace: name, name, uid: text }),
            hints: some({
              forZones: list(fc.record({ name: fc.oneof(text, fc.constant('')) })),
              forNodes: list(fc.record({ name })),
            }),
          },
          { requiredKeys: ['conditions'] },
        ),
      ),
      ports: list(some({ name: fc.oneof(name, fc.constant('')), protocol, port: fc.nat(70_000), appProtocol: text })),
    },
    { requiredKeys: ['metadata'] },
  ),
  Node: some({
    metadata,
    spec: some({
      podCIDR: text,
      podCIDRs: list(fc.constantFrom('10.244.0.0/24', 'fd00::/64', 'none')),
      providerID: text,
      unschedulable: fc.constant(true),
      taints: list(
        fc.record(
          { key: fc.oneof(text, fc.constant('')), value: text, effect: text },
          { requiredKeys: ['key', 'effect'] },
        ),
      ),
    }),
    status: some({
      addresses: list(fc.record({ type: text, address: fc.oneof(text, fc.constant('')) })),
      conditions: list(
        fc.record({
          type: fc.constantFrom('NetworkUnavailable', 'Ready'),
          status: fc.constantFrom('True', 'False', 'Unknown'),
          lastHeartbeatTime: time,
          lastTransitionTime: time,
        }),
      ),
    }),
  }),
  ServiceCIDR: some({ metadata, spec: some({ cidrs: list(fc.constantFrom('10.96.0.0/12', 'fd00::/112', 'none')) }) }),
};

const EMPTY_STATUS: { readonly [K in Builtin]?: object } = {
  Service: { status: { loadBalancer: {} } },
  Node: { status: {} },
};

it.each(Object.keys(OBJECTS) as Builtin[])('a %s is the same in protobuf as in JSON', (kind) => {
  const { apiVersion, message } = KINDS[kind];
  fc.assert(
    fc.property(OBJECTS[kind], (fields) => {
      const json = { kind, apiVersion, metadata: {}, ...fields };
      // In Go what is no pointer is always written, in JSON as well: an object without a spec has an empty one.
      const complete = kind === 'EndpointSlice' ? json : { spec: {}, ...EMPTY_STATUS[kind], ...json };
      const bytes = Buffer.from(encodeObject(complete as unknown as TypedObject));
      const read = readObject(message!, bytes);
      expect(decodeObject(KINDS[kind], read)).toEqual(decodeObject(KINDS[kind], complete));
    }),
    { numRuns: 300 },
  );
});
