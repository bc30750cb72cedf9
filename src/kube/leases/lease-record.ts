import type { ObjectResource } from '../api/client/api-object.ts';
import { isMapping } from '../objects/field-reader.ts';

export const LEASES: ObjectResource = {
  name: 'leases',
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  namespaced: true,
};

/** `spec` of a Lease (coordination.k8s.io/v1), as far as an election needs it. */
export interface LeaseRecord {
  /** `holderIdentity`; empty: nobody holds it. */
  readonly holder: string;
  /** `leaseDurationSeconds`; undefined when it is missing or no positive number. */
  readonly durationSeconds: number | undefined;
  /** When the holder got it, by its own calendar: for people. */
  readonly acquireTime: string | undefined;
  /** `leaseTransitions`: how often it went from one holder to another. */
  readonly transitions: number;
}

/** Never throws: whoever may write the Lease may write nonsense, which is taken for a missing field. */
export function readLeaseRecord(spec: unknown): LeaseRecord {
  const { holderIdentity, leaseDurationSeconds, acquireTime, leaseTransitions } = isMapping(spec) ? spec : {};
  return {
    holder: typeof holderIdentity === 'string' ? holderIdentity : '',
    durationSeconds: isCount(leaseDurationSeconds) && leaseDurationSeconds > 0 ? leaseDurationSeconds : undefined,
    acquireTime: typeof acquireTime === 'string' ? acquireTime : undefined,
    transitions: isCount(leaseTransitions) ? leaseTransitions : 0,
  };
}

/**
 * A MicroTime of the API, `2025-01-01T00:00:00.000000Z`.
 *
 * @param wallTime milliseconds since 1970
 * @param micros the last three digits, 0 to 999
 */
export function microTime(wallTime: number, micros: number): string {
  return new Date(wallTime).toISOString().replace('Z', `${String(micros).padStart(3, '0')}Z`);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}
