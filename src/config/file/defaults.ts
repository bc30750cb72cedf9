import { tryParseIp } from '../../core/index.ts';
import { appendPort } from '../values/bind-address.ts';
import type { GivenFields } from './config-file.ts';
import { ALL_FIELDS, type Configuration, type Field, isField, type Section } from './schema.ts';

export const HEALTHZ_PORT = 10256;
export const METRICS_PORT = 10249;

/**
 * Gives every field a value: the file's, or the default. An empty server address means the default, which is of the family
 * of `bindAddress`; one without a port gets the default port.
 */
export function withDefaults(given: GivenFields): Configuration {
  const filled = fill(ALL_FIELDS, given) as Configuration;
  const ipv6 = tryParseIp(filled.bindAddress)?.family === 'IPv6';
  return {
    ...filled,
    healthzBindAddress: appendPort(filled.healthzBindAddress || (ipv6 ? '::' : '0.0.0.0'), HEALTHZ_PORT),
    metricsBindAddress: appendPort(filled.metricsBindAddress || (ipv6 ? '::1' : '127.0.0.1'), METRICS_PORT),
  };
}

function fill(section: Section, given: GivenFields): object {
  return Object.fromEntries(
    Object.entries(section).map(([name, entry]) => {
      const value = given[name];
      return [name, isField(entry) ? fillField(entry, value) : fill(entry, (value ?? {}) as GivenFields)];
    }),
  );
}

function fillField(field: Field<unknown>, value: unknown): unknown {
  const unset = value === undefined || (field.zeroIsUnset && field.type.isZero(value));
  return unset ? field.fallback : value;
}
