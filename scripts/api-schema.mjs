// Writes test/golden/kubernetes-api.json: the API's own schema (OpenAPI) of the kinds in deploy/ and of those the agent reads, with all that they refer to. It is taken
// from the Kubernetes client, which is generated from it: which fields there are, of which type, and which are required.
//   node scripts/api-schema.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const KINDS = {
  'apps/v1': ['DaemonSet'],
  v1: ['ConfigMap', 'Node', 'Service', 'ServiceAccount'],
  'discovery.k8s.io/v1': ['EndpointSlice'],
  'networking.k8s.io/v1': ['ServiceCIDR'],
  'rbac.authorization.k8s.io/v1': ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
  'apiextensions.k8s.io/v1': ['CustomResourceDefinition'],
};
const target = new URL('../test/golden/kubernetes-api.json', import.meta.url);
const client = dirname(createRequire(import.meta.url).resolve('@kubernetes/client-node'));
const models = await import('@kubernetes/client-node');
const definitions = {};
const kinds = {};
let version;

for (const [apiVersion, names] of Object.entries(KINDS)) {
  for (const name of names) {
    kinds[`${apiVersion} ${name}`] = `V1${name}`;
    define(`V1${name}`);
  }
}
writeFileSync(target, format({ version, source: '@kubernetes/client-node', kinds, definitions }));

function define(name) {
  if (name in definitions) return;
  const types = models[name]?.getAttributeTypeMap?.();
  if (!types) throw new Error(`The client has no ${name}`);
  const text = readFileSync(join(client, `gen/models/${name}.d.ts`), 'utf8');
  const [, found] = /OpenAPI spec version: (v\S+)/.exec(text);
  version ??= found;
  if (found !== version) throw new Error(`${name} is of ${found}, the others of ${version}`);
  const properties = {};
  const required = types.filter((type) => text.includes(`\n    '${type.name}': `)).map(({ baseName }) => baseName);
  definitions[name] = { properties, ...(required.length > 0 && { required }) };
  for (const { baseName, type } of types) properties[baseName] = schemaOf(type);
}

/** The generated types in the words of JSON Schema. */
function schemaOf(type) {
  const [, item] = /^(?:Array|Set)<(.+)>$/.exec(type) ?? [];
  if (item) return { type: 'array', items: schemaOf(item) };
  const [, value] = /^\{ \[key: string\]: (.+); \}$/.exec(type) ?? [];
  if (value) return { type: 'object', additionalProperties: schemaOf(value) };
  if (['string', 'number', 'boolean'].includes(type)) return { type };
  if (type === 'Date') return { type: 'string' };
  if (type === 'IntOrString') return { type: ['number', 'string'] };
  if (type === 'any') return {};
  define(type);
  return { $ref: type };
}

/** One line for each definition: that is how changes are read. */
function format({ definitions: all, ...others }) {
  const lines = Object.keys(all)
    .sort()
    .map((name) => `    ${JSON.stringify(name)}: ${JSON.stringify(all[name])}`);
  const head = JSON.stringify(others, undefined, 2).slice(0, -2);
  return `${head},\n  "definitions": {\n${lines.join(',\n')}\n  }\n}\n`;
}
