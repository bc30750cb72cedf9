import { type IpFamily, ifPresent } from '../../core/index.ts';
import { readSysctl } from '../../sys/index.ts';
import { enableForwarding, FORWARDING, isForwarding, writeSysctlIfPresent } from '../link/sysctls.ts';
import { type Difference, type Finding, findingsOf } from './finding.ts';
import type { WantedLink } from './wanted-link.ts';

/** Of which families a node is the pod's gateway. */
export function forwardedFamilies({ mode, made, ips }: WantedLink): readonly IpFamily[] {
  if (mode === 'bridge' && (made?.gateways.length ?? 0) === 0) return [];
  return [...new Set(ips.map(({ address }) => address.address.family))];
}

/** Whether the node forwards what it is to forward for its pods. */
export function forwardingFindings(pods: readonly WantedLink[]): Finding[] {
  const families = new Set(pods.flatMap(forwardedFamilies));
  const off = [...families].filter((family) => !isForwarding(family));
  return findingsOf(
    'forwarding of the node',
    off.map((family) => ({
      theirs: `${FORWARDING[family]}=0`,
      ours: `${FORWARDING[family]}=1`,
      mend: () => enableForwarding([family]),
    })),
  );
}

/** Sysctls, by name, that are otherwise than set; what this kernel does not have differs from nothing. */
export function settingDifferences(wanted: Readonly<Record<string, number>>): Difference[] {
  return Object.entries(wanted).flatMap(([name, value]) => {
    const found = read(name);
    if (found === undefined || found === String(value)) return [];
    return [
      { theirs: `${name}=${found}`, ours: `${name}=${value}`, mend: () => void writeSysctlIfPresent(name, value) },
    ];
  });
}

/**
 * The sysctls by which a link forwards what comes in by it. Where the whole node does not, that is told, and mended for all its links.
 */
export function linkForwarding(link: string, families: readonly IpFamily[]): Record<string, number> {
  const own = { IPv4: `net/ipv4/conf/${link}/forwarding`, IPv6: `net/ipv6/conf/${link}/forwarding` };
  return Object.fromEntries(families.filter(isForwarding).map((family) => [own[family], 1]));
}

function read(name: string): string | undefined {
  return ifPresent(() => readSysctl(name));
}
