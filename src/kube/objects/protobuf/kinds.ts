import { INITIAL_EVENTS_END, KNOWN_ANNOTATIONS, KNOWN_LABELS } from '../known-names.ts';
import { Field, type Message, messageOf } from './message.ts';

// The fields of API objects that are read, by their numbers in the generated.proto of k8s.io/api and k8s.io/apimachinery (which
// never change: protobuf has no other names). A field that is read in JSON has to be here too, or it is not there for who
// speaks protobuf: kinds.test.ts holds both against each other.

const text = (name: string) => new Field(name, 'text');
const flag = (name: string) => new Field(name, 'flag', { keepsEmpty: true });
const integer = (name: string) => new Field(name, 'integer');
const texts = (name: string) => new Field(name, 'text', { repeated: true });
const nested = (name: string, message: Message) => new Field(name, 'message', { message });
const list = (name: string, message: Message) => new Field(name, 'message', { message, repeated: true });
/** What is in JSON with its empty value, too: a pointer in Go, or a field without `omitempty`. */
const emptyText = (name: string) => new Field(name, 'text', { keepsEmpty: true });
const emptyInteger = (name: string) => new Field(name, 'integer', { keepsEmpty: true });

/** meta/v1 ObjectMeta, what is read of every kind. Who manages which field (17), the largest part of most objects, is passed over. */
const OBJECT_META = {
  1: text('name'),
  3: text('namespace'),
  6: text('resourceVersion'),
  9: new Field('deletionTimestamp', 'time'),
  11: new Field('labels', 'map', { known: KNOWN_LABELS }),
  12: new Field('annotations', 'map', { known: new Set([...KNOWN_ANNOTATIONS, INITIAL_EVENTS_END]) }),
};

const metadata = nested('metadata', messageOf(OBJECT_META));

/** The same, with which one of its name the object is, and since when. */
const metadataWithAge = nested(
  'metadata',
  messageOf({ ...OBJECT_META, 5: text('uid'), 8: new Field('creationTimestamp', 'time') }),
);

const NAMED = messageOf({ 1: emptyText('name') });

/** core/v1 Service */
export const SERVICE = messageOf({
  1: metadataWithAge,
  2: nested(
    'spec',
    messageOf({
      1: list('ports', messageOf({ 1: text('name'), 2: text('protocol'), 3: integer('port'), 5: integer('nodePort') })),
      3: text('clusterIP'),
      4: text('type'),
      5: texts('externalIPs'),
      7: text('sessionAffinity'),
      9: texts('loadBalancerSourceRanges'),
      11: text('externalTrafficPolicy'),
      12: integer('healthCheckNodePort'),
      14: nested(
        'sessionAffinityConfig',
        messageOf({ 1: nested('clientIP', messageOf({ 1: emptyInteger('timeoutSeconds') })) }),
      ),
      18: texts('clusterIPs'),
      19: texts('ipFamilies'),
      22: emptyText('internalTrafficPolicy'),
    }),
  ),
  3: nested(
    'status',
    messageOf({
      1: nested(
        'loadBalancer',
        messageOf({ 1: list('ingress', messageOf({ 1: text('ip'), 3: emptyText('ipMode') })) }),
      ),
    }),
  ),
});

/** discovery.k8s.io/v1 EndpointSlice */
export const ENDPOINT_SLICE = messageOf({
  1: metadata,
  2: list(
    'endpoints',
    messageOf({
      1: texts('addresses'),
      2: nested('conditions', messageOf({ 1: flag('ready'), 2: flag('serving'), 3: flag('terminating') })),
      4: nested('targetRef', messageOf({ 1: text('kind'), 3: text('name') })),
      6: emptyText('nodeName'),
      8: nested('hints', messageOf({ 1: list('forZones', NAMED), 2: list('forNodes', NAMED) })),
    }),
  ),
  3: list('ports', messageOf({ 1: emptyText('name'), 2: emptyText('protocol'), 3: emptyInteger('port') })),
  4: text('addressType'),
});

/** core/v1 Node */
export const NODE = messageOf({
  1: metadataWithAge,
  2: nested(
    'spec',
    messageOf({
      1: text('podCIDR'),
      5: list('taints', messageOf({ 1: emptyText('key'), 3: emptyText('effect') })),
      7: texts('podCIDRs'),
    }),
  ),
  3: nested(
    'status',
    messageOf({
      4: list('conditions', messageOf({ 1: emptyText('type'), 2: emptyText('status') })),
      5: list('addresses', messageOf({ 1: emptyText('type'), 2: emptyText('address') })),
    }),
  ),
});

/** networking.k8s.io/v1 ServiceCIDR */
export const SERVICE_CIDR = messageOf({ 1: metadata, 2: nested('spec', messageOf({ 1: texts('cidrs') })) });
