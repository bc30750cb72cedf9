import { formatIp, type IpAddress } from '../../core/index.ts';
import type { Drift } from '../index.ts';
import { sameVirtualServer } from './compile/server.ts';
import { sameElement } from './compile/sets.ts';
import type { KernelState } from './diff/state.ts';

/** What was committed, to compare with. */
export interface CommittedState {
  readonly state: KernelState;
  /** The addresses NodePorts were given. */
  readonly nodePortAddresses: readonly IpAddress[];
}

/**
 * Says where the kernel differs from what was committed; rules are another matter (`ruleDrift`).
 *
 * @param found what the kernel holds now
 * @param nodePortAddresses those NodePorts would be given now
 */
export function findDrift(
  committed: CommittedState,
  found: KernelState,
  nodePortAddresses: readonly IpAddress[],
): Drift[] {
  const { state } = committed;
  return [
    ...compare('virtual server', state.servers, found.servers, (a, b) => sameVirtualServer(a.virtual, b.virtual)),
    ...[...state.servers].flatMap(([key, { destinations }]) => {
      const now = found.servers.get(key)?.destinations;
      if (!now) return [];
      return compare(`destination of ${key}`, destinations, now, (a, b) => a.weight === b.weight);
    }),
    ...compare('ipset member', state.elements, found.elements, sameElement),
    ...compare('address of kube-ipvs0', state.bound, found.bound, () => true),
    ...compare('NodePort address', byText(committed.nodePortAddresses), byText(nodePortAddresses), () => true),
  ];
}

function compare<T>(
  what: string,
  committed: ReadonlyMap<string, T>,
  found: ReadonlyMap<string, T>,
  same: (a: T, b: T) => boolean,
): Drift[] {
  const drift: Drift[] = [];
  for (const [key, value] of committed) {
    const now = found.get(key);
    if (now === undefined) drift.push({ object: `${what} ${key}`, difference: 'missing' });
    else if (!same(value, now)) drift.push({ object: `${what} ${key}`, difference: 'changed' });
  }
  for (const key of found.keys()) {
    if (!committed.has(key)) drift.push({ object: `${what} ${key}`, difference: 'unexpected' });
  }
  return drift;
}

function byText(addresses: readonly IpAddress[]): ReadonlyMap<string, IpAddress> {
  return new Map(addresses.map((ip) => [formatIp(ip), ip]));
}
