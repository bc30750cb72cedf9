import { readFileSync } from 'node:fs';

/** What of JSON Schema the kept schema uses. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
}

/** The API's schema of the kinds in deploy/; `node scripts/api-schema.mjs` writes it. */
export const API: {
  /** Of Kubernetes. */
  readonly version: string;
  /** By apiVersion and kind, the name of the definition. */
  readonly kinds: Readonly<Record<string, string>>;
  readonly definitions: Readonly<Record<string, Schema>>;
} = JSON.parse(readFileSync(new URL('../golden/kubernetes-api.json', import.meta.url), 'utf8'));

/** How strictly to look. */
export interface Strictness {
  /** Whether a part of an object is enough, as for server-side apply. @default false */
  readonly partial?: boolean;
}

/** Every place where an object does not fit the API: unknown fields, wrong types, missing required ones. */
export function misfits(object: Readonly<Record<string, unknown>>, strictness: Strictness = {}): string[] {
  const { apiVersion, kind } = object;
  const name = API.kinds[`${apiVersion} ${kind}`];
  if (name === undefined) return [`${apiVersion} ${kind}: not among the kinds of scripts/api-schema.mjs`];
  return misfitsOf(object, { $ref: name }, String(kind), strictness);
}

function misfitsOf(value: unknown, schema: Schema, path: string, strictness: Strictness): string[] {
  if (schema.$ref !== undefined) {
    if (!isMapping(value)) return [`${path}: ${nameOf(value)} instead of object`];
    const { properties = {}, required = [] } = API.definitions[schema.$ref]!;
    // What names an item of a list is needed in a part, too.
    const needed = strictness.partial ? required.filter((field) => field === 'name') : required;
    return [
      ...needed.filter((field) => !(field in value)).map((field) => `${path}.${field}: missing`),
      ...Object.entries(value).flatMap(([field, item]) => {
        const known = Object.hasOwn(properties, field) ? properties[field] : undefined;
        return known ? misfitsOf(item, known, `${path}.${field}`, strictness) : [`${path}.${field}: no such field`];
      }),
    ];
  }
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.includes(nameOf(value)))
    return [`${path}: ${nameOf(value)} instead of ${types.join(' or ')}`];
  const { items, additionalProperties } = schema;
  if (items) {
    return (value as readonly unknown[]).flatMap((item, at) => misfitsOf(item, items, `${path}[${at}]`, strictness));
  }
  if (additionalProperties) {
    return Object.entries(value as object).flatMap(([key, item]) =>
      misfitsOf(item, additionalProperties, `${path}.${key}`, strictness),
    );
  }
  return [];
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return nameOf(value) === 'object';
}

function nameOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
