import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KINDS } from '../objects/kinds.ts';
import { objectKey } from '../objects/types.ts';
import { readManifest } from './manifest-file.ts';
import type { ManifestKinds } from './manifest-kinds.ts';

const kinds: ManifestKinds = new Map(Object.entries(KINDS));

function keysAndLines(fileName: string, text: string): string[] {
  const { objects, problems } = readManifest(fileName, text, kinds);
  expect(problems).toEqual([]);
  return objects.map((item) => `${objectKey(item.object)} line ${item.line()}`);
}

const service = (name: string) => `apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {clusterIP: 10.96.0.1, ports: [{port: 80}]}
`;

describe('YAML', () => {
  it('reads all documents, skips empty ones and notes kinds that are not read', () => {
    const text = `# only a comment\n---\n${service('a')}---\n---\nkind: Deployment\nmetadata: {name: d, namespace: x}\n---\n${service('b')}`;
    expect(keysAndLines('x.yaml', text)).toEqual(['Service default/a line 3', 'Service default/b line 12']);
    expect(readManifest('x.yaml', text, kinds).ignored).toEqual(['Deployment x/d']);
    expect(readManifest('x.yaml', '', kinds).objects).toEqual([]);
  });

  it('takes lists apart; items of a typed list need neither kind nor version', () => {
    const list = `apiVersion: v1
kind: List
items:
- ${service('a').trim().replaceAll('\n', '\n  ')}
- kind: ConfigMap
`;
    expect(keysAndLines('x.yaml', list)).toEqual(['Service default/a line 4']);
    const typed = `apiVersion: discovery.k8s.io/v1
kind: EndpointSliceList
items:
- {metadata: {name: a, labels: {kubernetes.io/service-name: a}}, addressType: IPv4}
- {metadata: {name: b, labels: {kubernetes.io/service-name: b}}, addressType: IPv4}
`;
    expect(keysAndLines('x.yml', typed)).toEqual(['EndpointSlice default/a line 4', 'EndpointSlice default/b line 5']);
    expect(readManifest('x.yaml', 'kind: NodeList\napiVersion: v1\n', kinds).problems).toEqual([]);
    expect(readManifest('x.yaml', 'kind: DeploymentList\nitems: 7\n', kinds).ignored).toEqual(['DeploymentList']);
  });

  it('reads anchors, merge keys, and aliases used many times', () => {
    const ports = Array.from({ length: 500 }, (_, i) => `  - {<<: *p, name: p${i}, port: ${i + 1}}`).join('\n');
    const text = `apiVersion: v1\nkind: Service\nx-p: &p {protocol: UDP}\nmetadata: {name: a}\nspec:\n  clusterIP: 10.96.0.1\n  ports:\n${ports}\n`;
    const { objects, problems } = readManifest('x.yaml', text, kinds);
    expect(problems).toEqual([]);
    expect(objects[0]?.object).toMatchObject({ spec: { ports: { length: 500, 499: { protocol: 'UDP', port: 500 } } } });
  });

  it.each([
    ['a tab', 'a:\n\t- b', 2, 'Cannot be parsed: '],
    ['an open bracket', 'kind: Service\nspec: [\n', 3, 'Cannot be parsed: '],
    ['a repeated key', 'kind: Service\nkind: Node', 2, 'Cannot be parsed: Map keys must be unique'],
    ['an unknown alias', 'kind: Pod\n---\nb: *c', 3, 'Cannot be parsed: Unresolved alias'],
    ['endless nesting', '['.repeat(100_000), 1, 'Cannot be parsed: '],
    ['a list', 'a: 1\nkind: Pod\n---\n- x', 4, 'Expected an object with "apiVersion" and "kind", found a list'],
    ['plain text', '\nhello', 2, 'found "hello"'],
  ])('reports %s with its line', (_, text, line, message) => {
    const { problems } = readManifest('x.yaml', text, kinds);
    expect(problems).toHaveLength(1);
    expect(problems[0]!.where).toBe(`x.yaml:${line}`);
    expect(problems[0]!.message).toContain(message);
  });

  it('reports a wrong field with object, field and the line of the field', () => {
    const text = `---
kind: Service
apiVersion: v1
metadata:
  name: web
  namespace: demo
spec:
  ports:
  - name: http
    port: http
  - port: 81
    name:
      - a
`;
    expect(readManifest('web.yaml', text, kinds).problems).toEqual([
      {
        where: 'web.yaml:10',
        object: 'Service demo/web',
        field: 'spec.ports[0].port',
        message: 'Expected a port number from 1 to 65535, found "http"',
      },
      {
        where: 'web.yaml:12',
        object: 'Service demo/web',
        field: 'spec.ports[1].name',
        message: 'Expected text, found a list',
      },
    ]);
  });

  it('reports a missing field with the line of what should hold it', () => {
    const text = 'kind: Service\napiVersion: v1\nmetadata:\n  labels: {}\nspec: {}\n';
    expect(readManifest('x.yaml', text, kinds).problems).toEqual([
      { where: 'x.yaml:3', object: 'Service', field: 'metadata.name', message: 'Required, but missing' },
    ]);
  });

  it('follows an alias to the line of the value itself', () => {
    const text = 'x-bad: &bad\n  - port: 0\nkind: Service\napiVersion: v1\nmetadata: {name: a}\nspec: {ports: *bad}\n';
    expect(readManifest('x.yaml', text, kinds).problems).toMatchObject([
      { where: 'x.yaml:2', field: 'spec.ports[0].port' },
    ]);
  });

  it.each([
    ['kind: Service\napiVersion: v2\nmetadata: {name: a}', 2, 'apiVersion', 'Expected "v1" for a Service, found "v2"'],
    ['kind: Node\nmetadata: {name: a}', 1, 'apiVersion', 'Expected "v1" for a Node, found nothing'],
    ['kind: EndpointSlice\napiVersion: discovery.k8s.io/v1beta1', 2, 'apiVersion', '"discovery.k8s.io/v1"'],
    ['kind: ServiceCIDRList\napiVersion: v1\nitems: [{}]', 3, 'apiVersion', '"networking.k8s.io/v1"'],
    ['apiVersion: v1\nmetadata: {name: a}', 1, 'kind', 'Expected the kind of an object, found nothing'],
    ['kind: List\nitems:\n- kind: List', 3, 'kind', 'Expected an object inside a list, found "List"'],
    ['kind: List\nitems: 3', 2, 'items', 'Expected a list, found 3'],
  ])('refuses %j', (text, line, field, message) => {
    const { problems } = readManifest('x.yaml', text, kinds);
    expect(problems).toMatchObject([{ where: `x.yaml:${line}`, field }]);
    expect(problems[0]!.message).toContain(message);
  });

  it('takes the first of two definitions of an object and reports the second', () => {
    expect(readManifest('x.yaml', `${service('a')}---\n${service('b')}---\n${service('a')}`, kinds).problems).toEqual([
      {
        where: 'x.yaml:11',
        object: 'Service default/a',
        message: 'Already defined in line 1 of this file, which is in force; remove one of the two',
      },
    ]);
  });
});

describe('JSON', () => {
  const object = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'a' },
    spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }] },
  };

  it('reads an object or a list, a byte order mark, and several documents', () => {
    const list = { kind: 'List', items: [object, { ...object, metadata: { name: 'b' } }] };
    expect(keysAndLines('x.json', JSON.stringify(object))).toEqual(['Service default/a line 1']);
    expect(keysAndLines('x.json', `\uFEFF${JSON.stringify(list)}`)).toHaveLength(2);
    const documents = `${JSON.stringify(object)}\n---\n${JSON.stringify(list.items[1])}`;
    expect(keysAndLines('x.json', documents)).toEqual(['Service default/a line 1', 'Service default/b line 3']);
  });

  it.each(['  ', '\t'])('names the line of a wrong field (indented with %j)', (indent) => {
    const wrong = { ...object, spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }, { name: 'b', port: 0 }] } };
    const text = JSON.stringify({ kind: 'List', items: [wrong] }, null, indent);
    const line = text.split('\n').findIndex((row) => row.includes('"port": 0')) + 1;
    expect(readManifest('x.json', text, kinds).problems).toMatchObject([
      { where: `x.json:${line}`, object: 'Service default/a', field: 'spec.ports[1].port' },
    ]);
  });

  it('names the line of a syntax error', () => {
    const { problems } = readManifest('x.json', '{\n "kind": "Service",\n "metadata": {"name": "a"\n "spec"\n}', kinds);
    expect(problems).toHaveLength(1);
    expect(problems[0]!.where).toBe('x.json:4');
  });
});

it('never throws, whatever the text', () => {
  const fragment = fc.constantFrom(
    'kind: Service',
    'apiVersion: v1',
    '---',
    '- ',
    '  ',
    '{',
    '[',
    '"',
    '\n',
    '&a ',
    '*a',
    ': ',
    '\t',
    '%',
    '!',
    '|',
    '<<: ',
    'items:',
    'kind: List',
  );
  const text = fc.oneof(
    fc.string(),
    fc.array(fragment, { maxLength: 30 }).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(fc.constantFrom('x.yaml', 'x.json'), text, (fileName, source) => {
      const { objects, problems } = readManifest(fileName, source, kinds);
      for (const problem of problems) expect(problem.where).toMatch(/^x\.(yaml|json):[1-9]\d*$/);
      for (const item of objects) expect(item.line()).toBeGreaterThan(0);
    }),
    { numRuns: 500 },
  );
});
