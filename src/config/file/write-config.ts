import type { Program } from '../program.ts';
import type { Json } from '../values/value-type.ts';
import {
  ALL_FIELDS,
  API_VERSION,
  type Configuration,
  type Field,
  isField,
  KIND,
  KUBE_PROXY_FIELDS,
  type Section,
} from './schema.ts';
import { writeYaml } from './yaml-text.ts';

/**
 * The configuration in effect as a file that can be used again: what `--write-config-to` writes. kube-proxy's own command
 * line leaves out our section, which kube-proxy would not know.
 */
export function writeConfigYaml(effective: Configuration, program: Program): string {
  return writeYaml(asJson(effective, program));
}

/** The same as the answer of /configz: one JSON object with the configuration under the name of its API group. */
export function writeConfigz(effective: Configuration, program: Program): string {
  return JSON.stringify({ [API_VERSION.split('/')[0]!]: asJson(effective, program) });
}

function asJson(effective: Configuration, program: Program): { readonly [key: string]: Json } {
  const fields = program === 'kube-proxy' ? KUBE_PROXY_FIELDS : ALL_FIELDS;
  return { kind: KIND, apiVersion: API_VERSION, ...sectionAsJson(fields, effective as object as SectionValues) };
}

interface SectionValues {
  readonly [name: string]: unknown;
}

function sectionAsJson(section: Section, values: SectionValues): { readonly [key: string]: Json } {
  const entries: [string, Json][] = [];
  for (const [name, entry] of Object.entries(section)) {
    const value = values[name];
    if (!isField(entry)) entries.push([name, sectionAsJson(entry, value as SectionValues)]);
    else if (!isOmitted(entry, value)) entries.push([name, entry.type.toFile(value)]);
  }
  return Object.fromEntries(entries);
}

function isOmitted(field: Field<unknown>, value: unknown): boolean {
  return field.omitZero && field.type.isZero(value);
}
