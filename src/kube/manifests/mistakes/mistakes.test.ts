import { describe, expect, it } from 'vitest';
import { atOnce } from '../../../core/index.ts';
import { KINDS } from '../../objects/kinds.ts';
import { objectKey } from '../../objects/types.ts';
import { problemText, type SourceProblem } from '../../source.ts';
import { readManifest } from '../manifest-file.ts';
import type { ManifestKinds } from '../manifest-kinds.ts';
import { ManifestState } from '../manifest-state.ts';

// What an operator can get wrong in manifests. Each mistake is told with file, object, field, what was found and what to do,
// and stops no other object.

const kinds: ManifestKinds = new Map(Object.entries(KINDS));

const METADATA = 'metadata: {name: web, namespace: demo}';
const SERVICE = `apiVersion: v1\nkind: Service\n${METADATA}\nspec:\n  clusterIP: 10.96.0.10\n  ports: [{name: http, port: 80}]\n`;
const SLICE = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: demo, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.244.1.10]}]
`;
const NODE = `apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {addresses: [{type: InternalIP, address: 192.168.50.1}]}
`;
/** Whatever else is wrong, this one is served. */
const OTHER =
  'apiVersion: v1\nkind: Service\nmetadata: {name: good}\nspec: {clusterIP: 10.96.0.99, ports: [{port: 80}]}\n';

/** What the files of a folder come to. */
function look(files: Readonly<Record<string, string>>): { problems: readonly SourceProblem[]; objects: string[] } {
  const state = new ManifestState(kinds);
  const manifests = Object.entries(files).map(([name, text]) => [name, readManifest(name, text, kinds)] as const);
  const events = state.update(new Map(manifests));
  atOnce(state.lookBetween());
  return { problems: state.problems(), objects: events.map(({ object }) => objectKey(object)) };
}

/** A change of one of the texts above, and what is told of it. */
type Mistake = readonly [text: string, found: string, becomes: string, where: string, ...told: string[]];

/** The object is in force but for what is told. */
const DOUBTFUL: readonly Mistake[] = [
  [SERVICE, 'clusterIP:', 'clusterIp:', 'f.yaml:5: Service demo/web spec.clusterIp', 'did you mean "clusterIP"?'],
  [
    SERVICE,
    'port: 80',
    'port: 80, target_port: 8',
    'f.yaml:6: Service demo/web spec.ports[0].target_port',
    '"targetPort"',
  ],
  [SERVICE, 'spec:', 'sepc: {}\nspec:', 'f.yaml:4: Service demo/web sepc', 'no such field here', 'take it out'],
  [SERVICE, 'name: web,', 'name: web, lables: {},', 'Service demo/web metadata.lables', 'did you mean "labels"?'],
  [
    SERVICE,
    'spec:',
    'spec:\n  loadBalancerSourceRange: []',
    'spec.loadBalancerSourceRange',
    '"loadBalancerSourceRanges"',
  ],
  [
    SERVICE,
    'spec:',
    'spec:\n  loadBalancerSourceRanges: [x/8]',
    'f.yaml:5: Service demo/web spec.loadBalancerSourceRanges[0]',
    '"x/8"',
    'correct it',
  ],
  [
    SERVICE,
    'spec:',
    'spec:\n  loadBalancerSourceRanges: [192.0.2.1]',
    'Ranges[0]',
    '"192.0.2.1"',
    'write "192.0.2.1/32"',
  ],
  [SERVICE, 'spec:', 'spec:\n  loadBalancerSourceRanges: ["fd00::1"]', 'Ranges[0]', '"fd00::1"', 'write "fd00::1/128"'],
  [
    SERVICE,
    'spec:',
    'spec:\n  externalIPs: [192.0.2.1, 192.0.2]',
    'f.yaml:5: Service demo/web spec.externalIPs[1]',
    '"192.0.2"',
    'correct it',
  ],
  [
    SERVICE,
    'spec:',
    'spec:\n  externalIPs: [192.0.2.0/24]',
    'spec.externalIPs[0]',
    '"192.0.2.0/24"',
    'give single addresses',
  ],
  [
    SERVICE,
    '  clusterIP: 10.96.0.10\n',
    '',
    'f.yaml:4: Service demo/web spec.clusterIP',
    'Required, but missing',
    'write an address',
  ],
  [SERVICE, '  ports: [{name: http, port: 80}]\n', '', 'Service demo/web spec.ports', 'found none', 'add one'],
  [
    SERVICE,
    'name: web,',
    'name: web, annotations: {nodeplane.io/ipvs-sheduler: wrr},',
    'metadata.annotations',
    'nodeplane.io/ipvs-sheduler',
    'did you mean "nodeplane.io/ipvs-scheduler"?',
  ],
  [
    SLICE,
    'kubernetes.io/service-name: web',
    '',
    'f.yaml:3: EndpointSlice demo/web-1 metadata.labels["kubernetes.io/service-name"]',
    'Required, but missing',
    'give it the name of its Service',
  ],
  [
    SLICE,
    'kubernetes.io/service-name',
    'kubernetes.io/service-nam',
    'metadata.labels',
    '"kubernetes.io/service-nam" stands in its place',
  ],
  [
    SLICE,
    'service-name: web',
    'service-name: shop',
    'f.yaml: EndpointSlice demo/web-1 metadata.labels',
    'no Service demo/shop',
    'correct the label, or add the Service',
  ],
  [SLICE, 'port: 8080', 'port: 8080, nodePort: 1', 'EndpointSlice demo/web-1 ports[0].nodePort', 'take it out'],
  [
    SLICE,
    'endpoints: [{',
    'endpoints: [{condition: {ready: true}, ',
    'endpoints[0].condition',
    'did you mean "conditions"?',
  ],
  [
    NODE,
    '192.168.50.1',
    'node-1',
    'f.yaml:4: Node node-1 status.addresses[0].address',
    '"node-1"',
    'correct it or take it out',
  ],
  [
    NODE,
    'InternalIP',
    'internalIP',
    'Node node-1 status.addresses[0].type',
    '"internalIP"',
    'did you mean "InternalIP"?',
  ],
  [NODE, 'status:', 'spec: {podCidr: 10.244.1.0/24}\nstatus:', 'Node node-1 spec.podCidr', 'did you mean "podCIDR"?'],
];

/** The object is not in force. */
const REFUSED: readonly Mistake[] = [
  [
    SERVICE,
    'kind: Service',
    'kind: service',
    'f.yaml:2: service demo/web kind',
    '"service"',
    'did you mean "Service"?',
  ],
  [SERVICE, 'kind: Service', 'kind: Services', 'kind', '"Services"', 'did you mean "Service"?'],
  [SERVICE, 'kind: Service', 'kind: Balancer', 'kind', 'v1 has no kind "Balancer"', 'those that are read are "Node"'],
  [SERVICE, 'kind: Service', 'Kind: Service', 'kind', 'found nothing', '"Kind" is written "kind"'],
  [
    SERVICE,
    'apiVersion',
    'apiversion',
    'f.yaml:1: Service demo/web apiVersion',
    'found nothing',
    '"apiversion" is written "apiVersion"',
  ],
  [SERVICE, 'apiVersion: v1', 'apiVersion: core/v1', 'Service demo/web apiVersion', 'Expected "v1"', 'found "core/v1"'],
  [
    SLICE,
    'k8s.io/v1\n',
    'k8s.io/v1beta1\n',
    'f.yaml:1: EndpointSlice demo/web-1 apiVersion',
    'Expected "discovery.k8s.io/v1"',
    'v1beta1"',
  ],
  [SLICE, 'kind: EndpointSlice', 'kind: EndpointSlices', 'kind', '"EndpointSlices"', 'did you mean "EndpointSlice"?'],
  [
    SERVICE,
    'port: 80',
    'port: 65536',
    'f.yaml:6: Service demo/web spec.ports[0].port',
    'from 1 to 65535',
    'found 65536',
  ],
  [SERVICE, 'port: 80', 'port: "80"', 'Service demo/web spec.ports[0].port', 'from 1 to 65535', 'found "80"'],
  [SERVICE, 'port: 80', 'port: 80, nodePort: 70000', 'spec.ports[0].nodePort', 'from 0 to 65535', 'found 70000'],
  [SERVICE, 'port: 80', 'port: 80, protocol: tcp', 'spec.ports[0].protocol', '"TCP", "UDP", "SCTP"', 'found "tcp"'],
  [SERVICE, '10.96.0.10', '10.96.0', 'spec.clusterIP', 'an IP address or "None"', 'found "10.96.0"'],
  [SERVICE, 'name: web,', 'name: Web_1,', 'metadata.name', 'lower-case letters', 'found "Web_1"'],
  [SERVICE, 'metadata:', 'metdata:', 'f.yaml:3: Service metdata', 'did you mean "metadata"?'],
  [SERVICE, 'metadata: {', 'metadata: {labels: {}} #', 'Service metadata.name', 'Required, but missing'],
  [SERVICE, 'spec:', 'spec:\n  type: Loadbalancer', 'spec.type', '"LoadBalancer"', 'found "Loadbalancer"'],
  [SLICE, 'IPv4', 'ipv4', 'addressType', '"IPv4", "IPv6", "FQDN"', 'found "ipv4"'],
  [SLICE, '10.244.1.10', 'fd00::1', 'endpoints[0].addresses[0]', 'an IPv4 address', 'found "fd00::1"'],
  [
    NODE,
    'status:',
    'spec: {podCIDRs: [10.244.1.0]}\nstatus:',
    'spec.podCIDRs[0]',
    'a CIDR such as',
    'found "10.244.1.0"',
  ],
  [SERVICE, '  ports: [', '\tports: [', 'f.yaml:6: Cannot be parsed', 'Tabs are not allowed as indentation'],
  [
    SERVICE,
    'name: http',
    'name: *http',
    'f.yaml:1: Cannot be parsed',
    'the anchor must be set before the alias): http',
  ],
  [
    SERVICE,
    'spec:',
    'apiVersion: v1\nspec:',
    'f.yaml:4: Cannot be parsed',
    'keep one of the two, or put "---" between',
  ],
];

function titled(mistakes: readonly Mistake[]) {
  return mistakes.map((mistake) => ({ mistake, title: `${mistake[1].trim()} -> ${mistake[2].trim()}` }));
}

function linesOf([text, found, becomes]: Mistake): {
  lines: string[];
  objects: string[];
  problems: readonly SourceProblem[];
} {
  expect(text).toContain(found);
  // The slice of the Service is in order, and so is its Service.
  const beside = text === SLICE ? { 'beside.yaml': SERVICE } : {};
  const { problems, objects } = look({ 'a.yaml': OTHER, ...beside, 'f.yaml': `${text.replace(found, becomes)}` });
  return { lines: problems.map(problemText), objects, problems };
}

describe('what does nothing, or probably not what was meant, is told, and the object is in force', () => {
  it.each(titled(DOUBTFUL))('$title', ({ mistake }) => {
    const { lines, objects, problems } = linesOf(mistake);
    expect(lines).toHaveLength(1);
    for (const part of mistake.slice(3)) expect(lines[0]).toContain(part);
    expect(problems[0]!.inForce).toBe(true);
    expect(objects).toContain('Service default/good');
    expect(objects).toHaveLength(mistake[0] === SLICE ? 3 : 2);
  });
});

describe('what cannot be used is told, and no other object is stopped', () => {
  it.each(titled(REFUSED))('$title', ({ mistake }) => {
    const { lines, objects, problems } = linesOf(mistake);
    const line = lines.find((each) => each.includes(mistake[3])) ?? lines.join('\n');
    for (const part of mistake.slice(3)) expect(line).toContain(part);
    expect(problems.some(({ inForce }) => inForce)).toBe(false);
    expect(objects).toContain('Service default/good');
    expect(objects).toHaveLength(mistake[0] === SLICE ? 2 : 1);
  });
});

describe('mistakes between objects', () => {
  const second = SERVICE.replace('name: web', 'name: second');
  it.each([
    [
      'ports of other names',
      { 'a.yaml': SERVICE, 'b.yaml': SLICE.replace('name: http', 'name: web') },
      ['a.yaml: Service demo/web spec.ports[0].name', '"http"', '"web"', 'give both the same'],
    ],
    [
      'a ClusterIP twice',
      { 'a.yaml': SERVICE, 'b.yaml': second },
      [
        'a.yaml: Service demo/web spec.clusterIP',
        'Service demo/second has ClusterIP 10.96.0.10 too',
        'give each its own',
      ],
    ],
    [
      'a NodePort twice',
      {
        'a.yaml': SERVICE.replace('port: 80', 'port: 80, nodePort: 30080'),
        'b.yaml': second.replace('0.10', '0.11').replace('port: 80', 'port: 81, nodePort: 30080'),
      },
      ['a.yaml: Service demo/web spec.ports[0].nodePort', 'NodePort 30080/TCP', 'give each its own'],
    ],
    [
      'an object in two files',
      { 'a.yaml': SERVICE, 'b.yaml': SERVICE },
      ['b.yaml:1: Service demo/web', 'Already defined in "a.yaml"', 'remove one of the two'],
    ],
    [
      'an object twice in a file',
      { 'a.yaml': `${SERVICE}---\n${SERVICE}` },
      ['a.yaml:8: Service demo/web', 'line 1', 'remove one of the two'],
    ],
    [
      'a slice of a Service nearly of that name',
      { 'a.yaml': SERVICE, 'b.yaml': SLICE.replace('service-name: web', 'service-name: webb') },
      ['b.yaml: EndpointSlice demo/web-1', 'demo/webb', 'did you mean demo/web?'],
    ],
    [
      'Endpoints in place of an EndpointSlice',
      { 'a.yaml': SERVICE, 'b.yaml': `apiVersion: v1\nkind: Endpoints\n${METADATA}\n` },
      ['b.yaml: Endpoints demo/web kind', 'no EndpointSlice; write one (discovery.k8s.io/v1)'],
    ],
  ])('%s', (_, files, parts) => {
    const lines = look(files).problems.map(problemText);
    expect(lines).toHaveLength(1);
    for (const part of parts) expect(lines[0]).toContain(part);
  });

  it('of a Service that cannot be used, its slices say nothing', () => {
    const { problems } = look({ 'a.yaml': SERVICE.replace('port: 80', 'port: 0'), 'b.yaml': SLICE });
    expect(problems.map(({ where }) => where)).toEqual(['a.yaml:6']);
  });

  it('a ClusterIP of both families, NodePorts of two protocols and headless Services are none', () => {
    const both = SERVICE.replace(
      'port: 80}',
      'port: 53, nodePort: 30053}, {name: u, protocol: UDP, port: 53, nodePort: 30053}',
    );
    const headless = second.replace('10.96.0.10', 'None');
    const third = headless.replace('second', 'third');
    const families = 'clusterIP: 10.96.0.10\n  clusterIPs: [10.96.0.10, "fd00::10"]';
    const files = { 'a.yaml': both.replace('clusterIP: 10.96.0.10', families), 'b.yaml': headless, 'c.yaml': third };
    expect(look(files).problems).toEqual([]);
  });
});

describe('what is right is told nothing of', () => {
  it.each([
    ['objects that belong together', { 'a.yaml': `${SERVICE}---\n${SLICE}---\n${NODE}` }],
    [
      'empty documents and comments',
      { 'a.yaml': `# nothing\n---\n---\n${SERVICE}---\n`, 'b.yaml': '', 'c.yaml': '---\n' },
    ],
    [
      'kinds of others',
      {
        'a.yaml':
          'apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\n',
      },
    ],
    [
      'fields that are not read',
      {
        'a.yaml': SERVICE.replace(
          'spec:',
          'spec:\n  selector: {app: web}\n  trafficDistribution: PreferClose\n  internalTrafficPolicy: Cluster',
        ),
      },
    ],
    [
      'what anchors stand in',
      { 'a.yaml': `x-port: &p {name: http, port: 80}\n${SERVICE.replace('{name: http, port: 80}', '*p')}` },
    ],
    [
      'an ExternalName',
      {
        'a.yaml': `apiVersion: v1\nkind: Service\n${METADATA}\nspec: {type: ExternalName, externalName: example.org}\n`,
      },
    ],
  ])('%s', (_, files) => {
    expect(look(files).problems).toEqual([]);
  });
});

it('names twenty of many, and says that there are more', () => {
  const ports = Array.from({ length: 50 }, (_, index) => `{name: p${index}, port: ${index + 1}, targetport: 1}`).join(
    ', ',
  );
  const { problems, objects } = look({ 'f.yaml': SERVICE.replace('{name: http, port: 80}', ports) });
  expect(problems).toHaveLength(21);
  expect(problems.at(-1)).toMatchObject({ where: 'f.yaml', message: expect.stringContaining('more fields') });
  expect(objects).toEqual(['Service demo/web']);
});
