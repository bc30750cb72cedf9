import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { isMapping } from '../../../src/core/index.ts';

/** What the CustomResourceDefinition in deploy/crds uses of a structural schema. */
interface Schema {
  readonly type: 'object' | 'string';
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly enum?: readonly string[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: 'date-time';
  readonly 'x-kubernetes-validations'?: readonly { readonly rule: string; readonly message: string }[];
}

interface Definition {
  readonly spec: {
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[];
  };
}

let schema: Schema | undefined;

/** Read when it is first needed: a benchmark, which needs none, is bundled into a file that lies elsewhere. */
function schemaOfBlocks(): Schema {
  if (!schema) {
    const file = new URL('../../../deploy/crds/podcidrblocks.yaml', import.meta.url);
    const { spec } = parse(readFileSync(file, 'utf8')) as Definition;
    schema = spec.versions[0]!.schema.openAPIV3Schema;
  }
  return schema;
}

type Block = { readonly metadata: { readonly name: string }; readonly spec: { readonly cidr: string } };

/** The rules in CEL, in our words; `old` is what was there before. */
const RULES: Readonly<Record<string, (self: unknown, old: unknown) => boolean>> = {
  'self == oldSelf': (self, old) => isDeepStrictEqual(self, old),
  "self == oldSelf || oldSelf == 'pending' || self == 'releasing'": (self, old) =>
    self === old || old === 'pending' || self === 'releasing',
  "self.metadata.name == self.spec.cidr.replace('.', '-').replace(':', '-').replace('/', '-')": (self) => {
    const { metadata, spec } = self as Block;
    return metadata.name === spec.cidr.replaceAll('.', '-').replaceAll(':', '-').replaceAll('/', '-');
  },
};

/**
 * What a real server would say against an object of a kind that deploy/crds defines: its schema, and its rules. Fields
 * that the schema does not have are a problem here; a real server drops them without a word.
 *
 * @param live the object before the write; undefined: it is created
 */
export function customResourceProblems(kind: string, object: unknown, live: unknown): readonly string[] {
  if (kind !== 'PodCIDRBlock') return [];
  const problems: string[] = [];
  check(schemaOfBlocks(), object, live, '', problems);
  return problems;
}

function check(schema: Schema, value: unknown, old: unknown, path: string, problems: string[]): void {
  const at = path === '' ? '<root>' : path;
  if (schema.type === 'object') {
    if (!isMapping(value)) return void problems.push(`${at}: Invalid value: must be of type object`);
    checkFields(schema, value, old, path, problems);
  } else {
    if (typeof value !== 'string') return void problems.push(`${at}: Invalid value: must be of type string`);
    problems.push(...textProblems(schema, value).map((problem) => `${at}: ${problem}`));
  }
  // Rules are asked about what is valid otherwise.
  if (problems.length > 0) return;
  for (const { rule, message } of schema['x-kubernetes-validations'] ?? []) {
    const holds = RULES[rule];
    if (!holds) throw new Error(`The fake API server does not know the rule ${rule}`);
    if (rule.includes('oldSelf') && old === undefined) continue;
    if (!holds(value, old)) problems.push(`${at}: Invalid value: ${message}`);
  }
}

function checkFields(
  { required = [], properties = {} }: Schema,
  value: Readonly<Record<string, unknown>>,
  old: unknown,
  path: string,
  problems: string[],
): void {
  const pathOf = (field: string) => (path === '' ? field : `${path}.${field}`);
  for (const field of required) if (!(field in value)) problems.push(`${pathOf(field)}: Required value`);
  for (const [field, item] of Object.entries(value)) {
    const schema = properties[field];
    if (schema) check(schema, item, isMapping(old) ? old[field] : undefined, pathOf(field), problems);
    else if (path !== '') problems.push(`${pathOf(field)}: Unknown field`);
  }
}

function textProblems({ enum: choices, minLength, maxLength, pattern, format }: Schema, text: string): string[] {
  const problems: string[] = [];
  if (choices && !choices.includes(text)) problems.push(`Unsupported value: "${text}"`);
  if (minLength !== undefined && text.length < minLength) problems.push(`Invalid value: at least ${minLength} long`);
  if (maxLength !== undefined && text.length > maxLength) problems.push(`Too long: may not be more than ${maxLength}`);
  if (pattern !== undefined && !new RegExp(pattern).test(text)) problems.push(`Invalid value: should match ${pattern}`);
  if (format && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text)) {
    problems.push(`Invalid value: must be of type ${format}`);
  }
  return problems;
}
