import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { API } from '../../../../test/deploy/api-schema.ts';
import { KINDS } from '../../objects/kinds.ts';
import { KNOWN_FIELDS, type KnownFields } from './known-fields.ts';

/** Of a later version than the schema that is kept. */
const LATER = ['Node.status.declaredFeatures'];

type Schema = (typeof API)['definitions'][string];

/** What is in one and not in the other. */
function differences(known: KnownFields, schema: Schema, path: string): string[] {
  const named = schema.$ref ? API.definitions[schema.$ref]! : (schema.items ?? schema);
  const { properties = {} } = named.$ref ? API.definitions[named.$ref]! : named;
  const below = [...known.below].flatMap(([name, inner]) =>
    properties[name] ? differences(inner, properties[name], `${path}.${name}`) : [],
  );
  const untold = Object.keys(properties).filter((name) => !known.names.has(name));
  const invented = [...known.names].filter((name) => !(name in properties));
  return [...untold, ...invented].map((name) => `${path}.${name}`).concat(below);
}

it.each(Object.values(KINDS).filter(({ kind }) => kind !== 'PodCIDRBlock'))(
  'the fields of a $kind are those of the API',
  ({ kind, apiVersion }) => {
    const schema: Schema = { $ref: API.kinds[`${apiVersion} ${kind}`]! };
    expect(differences(KNOWN_FIELDS[kind], schema, kind).filter((path) => !LATER.includes(path))).toEqual([]);
  },
);

it('the fields of a PodCIDRBlock are those of its definition', () => {
  const text = readFileSync(new URL('../../../../deploy/crds/podcidrblocks.yaml', import.meta.url), 'utf8');
  const schema = parse(text).spec.versions[0].schema.openAPIV3Schema as Schema;
  const { names, below } = KNOWN_FIELDS.PodCIDRBlock;
  const own = [...names].filter((name) => !['apiVersion', 'kind', 'metadata'].includes(name));
  expect(own.sort()).toEqual(Object.keys(schema.properties!).sort());
  expect(differences(below.get('spec')!, schema.properties!.spec!, 'spec')).toEqual([]);
});
