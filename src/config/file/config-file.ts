import { NodeplaneError, nearestWord } from '../../core/index.ts';
import type { Program } from '../program.ts';
import { isMapping } from '../values/list-types.ts';
import { ALL_FIELDS, API_VERSION, type Field, isField, KIND, KUBE_PROXY_FIELDS, type Section } from './schema.ts';
import { readYaml } from './yaml-text.ts';

/** The fields that a file sets, in the file's shape; sections and fields that it does not mention are missing. */
export interface GivenFields {
  readonly [name: string]: unknown;
}

/** A configuration file that can be used. */
export interface DecodedFile {
  readonly given: GivenFields;
  /** What strict decoding objects to, in words: unknown fields and duplicate keys. None of it keeps the file from being used. */
  readonly strictProblems: readonly string[];
  /** YAML documents after the first, which are not read. */
  readonly furtherDocuments: number;
}

/**
 * Decodes a KubeProxyConfiguration v1alpha1, YAML or JSON. As in kube-proxy, unknown fields and duplicate keys (the later wins)
 * are only reported, but a value of the wrong type is an error.
 *
 * @param program kube-proxy's own command line does not know the section `nodeplane`
 * @throws ERR_CONFIG `failed to decode: ...`, for text that is no YAML, another kind or version, or with all values of the wrong type
 */
export function decodeConfigFile(source: string, program: Program): DecodedFile {
  const content = readYaml(source);
  if (typeof content === 'string') throw notDecoded(content);
  if (!isMapping(content.data)) throw notDecoded('the file holds no mapping of fields');
  const { apiVersion, kind, ...fields } = content.data;
  if (kind !== KIND || apiVersion !== API_VERSION) {
    const found = `kind ${quoted(kind)} of apiVersion ${quoted(apiVersion)}`;
    throw notDecoded(`the file holds ${found}, but "${KIND}" of "${API_VERSION}" is needed`);
  }
  const report: Report = { unknown: [], wrong: [] };
  const given = readSection(program === 'kube-proxy' ? KUBE_PROXY_FIELDS : ALL_FIELDS, fields, '', report);
  if (report.wrong.length > 0) throw notDecoded(report.wrong.join('; '));
  return {
    given,
    strictProblems: [...report.unknown, ...content.duplicates],
    furtherDocuments: content.furtherDocuments,
  };
}

interface Report {
  /** In words. */
  readonly unknown: string[];
  readonly wrong: string[];
}

function readSection(section: Section, raw: GivenFields, prefix: string, report: Report): GivenFields {
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(raw)) {
    const path = `${prefix}${name}`;
    const entry = Object.hasOwn(section, name) ? section[name] : undefined;
    if (!entry) report.unknown.push(unknownField(path, name, section));
    else if (value === null) continue;
    else if (isField(entry)) given[name] = readField(entry, value, path, report);
    else if (isMapping(value)) given[name] = readSection(entry, value, `${path}.`, report);
    else report.wrong.push(`${path}: expected a section with fields, found ${quoted(value)}`);
  }
  return given;
}

function unknownField(path: string, name: string, section: Section): string {
  const meant = nearestWord(name, Object.keys(section));
  return `unknown field "${path}"${meant === undefined ? '' : ` (did you mean "${meant}"?)`}`;
}

function readField(field: Field<unknown>, raw: unknown, path: string, report: Report): unknown {
  const value = field.type.fromFile(raw);
  if (value === undefined) report.wrong.push(`${path}: expected ${field.type.expected}, found ${quoted(raw)}`);
  return value;
}

function notDecoded(reason: string): NodeplaneError {
  return new NodeplaneError('ERR_CONFIG', `failed to decode: ${reason}`);
}

/** A value as JSON, short enough for a message; `nothing` if it is missing. */
function quoted(value: unknown): string {
  const json = JSON.stringify(value) ?? 'nothing';
  return json.length > 60 ? `${json.slice(0, 60)}…` : json;
}
