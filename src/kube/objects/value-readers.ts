import { type IpFamily, ipFamilyOf, tryParseCidr } from '../../core/index.ts';
import { integer, oneOf, type Reader, textThat } from './field-reader.ts';
import type { Protocol } from './types.ts';

// Values that more than one kind of object holds.

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** RFC 1123 label, at most 63 characters: namespaces and port names. */
export const dnsLabel = textThat('a name of lower-case letters, digits and "-" (at most 63)', isDnsLabel);

/**
 * RFC 1123 subdomain, at most 253 characters: object names. The API has tighter rules for some kinds; what matters here
 * is that a name can stand in a key (`namespace/name`) and in a rule's comment without quoting.
 */
export const dnsSubdomain = textThat(
  'a name of lower-case letters, digits, "-" and "." (at most 253)',
  (value) => value.length <= 253 && value.split('.').every((part) => DNS_LABEL.test(part)),
);

/** The empty name is that of the only port. */
export const portName = textThat(
  'a port name of lower-case letters, digits and "-" (at most 63)',
  (value) => value === '' || isDnsLabel(value),
);

export const portNumber = integer('a port number', 1, 65535);

/** As `portNumber`; 0 means none, as in the API. */
export const portNumberOrNone = integer('a port number', 0, 65535);

export const protocol: Reader<Protocol> = oneOf('TCP', 'UDP', 'SCTP');

export const trafficPolicy = oneOf('Cluster', 'Local');

/** An address, `None` (headless) or empty (none assigned). */
export const clusterIp = textThat(
  'an IP address or "None"',
  (value) => value === '' || value === 'None' || ipFamilyOf(value) !== undefined,
);

export const addressOrEmpty = textThat('an IP address', (value) => value === '' || ipFamilyOf(value) !== undefined);

/** An address of one family, which stays text. */
export function addressOf(family: IpFamily): Reader<string> {
  return textThat(`an ${family} address`, (value) => ipFamilyOf(value) === family);
}

export const cidr = textThat('a CIDR such as "10.244.0.0/24"', isCidr);

export const cidrOrEmpty = textThat('a CIDR such as "10.244.0.0/24"', (value) => value === '' || isCidr(value));

function isDnsLabel(value: string): boolean {
  return value.length <= 63 && DNS_LABEL.test(value);
}

function isCidr(value: string): boolean {
  return tryParseCidr(value) !== undefined;
}
