import {
  compareText,
  formatIp,
  formatIpPort,
  type IpAddress,
  insertSorted,
  removeSorted,
  trimmed,
} from '../../../core/index.ts';
import type { Protocol } from '../../../kube/index.ts';
import { type ServicePort, type ServicePorts, withPolicyInUse } from '../service-port.ts';
import { Findings, type Restriction } from './findings.ts';

/** What a destination is to a Service port. */
export type DestinationKind = 'clusterIp' | 'loadBalancerVip' | 'externalIp' | 'nodePort';

/**
 * Who goes first. The API server gives every ClusterIP and NodePort to one Service alone, a load-balancer VIP is given by a
 * controller, and an external IP is what anybody writes into a Service (CVE-2020-8554).
 */
const RANK: Readonly<Record<DestinationKind, number>> = {
  clusterIp: 0,
  nodePort: 0,
  loadBalancerVip: 1,
  externalIp: 2,
};

const KIND_IN_WORDS: Readonly<Record<DestinationKind, string>> = {
  clusterIp: 'the ClusterIP',
  nodePort: 'the NodePort',
  loadBalancerVip: 'a load-balancer VIP',
  externalIp: 'an external IP',
};

/** What a Service port asks for: one destination. */
export interface DestinationClaim {
  /** Address, protocol and port, or protocol and NodePort. */
  readonly destination: string;
  readonly kind: DestinationKind;
  /** When the Service was created, in milliseconds since the epoch; Infinity: not known, as if it were the youngest. */
  readonly createdAt: number;
  readonly serviceName: string;
  readonly portKey: string;
}

/** Everything the ports of a Service ask for, each destination of a port once. */
export function claimsOf({ ports, withheldVips }: ServicePorts, createdAt: number): readonly DestinationClaim[] {
  const claims: DestinationClaim[] = [];
  for (const {
    key: portKey,
    serviceName,
    protocol,
    port,
    nodePort,
    clusterIp,
    loadBalancerVips,
    externalIps,
  } of ports) {
    const claim = (kind: DestinationKind, destination: string): void => {
      claims.push({ destination, kind, createdAt, serviceName, portKey });
    };
    claim('clusterIp', addressPort(clusterIp, port, protocol));
    for (const ip of loadBalancerVips) claim('loadBalancerVip', addressPort(ip, port, protocol));
    for (const ip of withheldVips) claim('loadBalancerVip', addressPort(ip, port, protocol));
    for (const ip of externalIps) claim('externalIp', addressPort(ip, port, protocol));
    if (nodePort !== 0) claim('nodePort', nodePortText(nodePort, protocol));
  }
  return trimmed(claims);
}

/** The order of those who claim one destination; the first one has it. Total: no two claims are equal. */
export function compareClaims(a: DestinationClaim, b: DestinationClaim): number {
  return (
    RANK[a.kind] - RANK[b.kind] ||
    compareTimes(a.createdAt, b.createdAt) ||
    compareText(a.serviceName, b.serviceName) ||
    compareText(a.portKey, b.portKey)
  );
}

/** Not by their difference: that of two that are not known is no number. */
function compareTimes(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/**
 * How many of those who wait for a destination are told that it has another owner. More would make each change the dearer, the
 * more of them there are.
 */
const TOLD_OF_CHANGE = 8;

/**
 * Who has which destination, before any dataplane is asked: a destination leads to one Service, whoever else claims it.
 * A change costs the same whatever the number of Services, and next to nothing the more there are at one destination.
 */
export class DestinationOwners {
  /** In order. A single claim, which nearly all are, stands without a list. */
  readonly #claims = new Map<string, DestinationClaim | DestinationClaim[]>();

  /** The claim that is in force. */
  ownerOf(destination: string): DestinationClaim | undefined {
    const claims = this.#claims.get(destination);
    return Array.isArray(claims) ? claims[0] : claims;
  }

  /**
   * Replaces the claims of a Service.
   *
   * @param before what was given as `after` the last time
   * @param affected gets the names of the Services, this one or others, that have more or less than before
   */
  replace(before: readonly DestinationClaim[], after: readonly DestinationClaim[], affected: Set<string>): void {
    if (before.length === after.length && before.every((claim, index) => sameClaim(claim, after[index]!))) return;
    for (const claim of before) this.#change(claim, affected, () => this.#remove(claim));
    for (const claim of after) {
      if (this.#claims.has(claim.destination)) this.#change(claim, affected, () => this.#add(claim));
      else {
        // As nearly always.
        this.#claims.set(claim.destination, claim);
        affected.add(claim.serviceName);
      }
    }
  }

  /** Whether all of these claims are in force, as nearly always: then `keepOwned` has nothing to take away. */
  hasAll(claims: readonly DestinationClaim[]): boolean {
    return claims.every(({ destination, portKey }) => this.ownerOf(destination)?.portKey === portKey);
  }

  /** The ports with what they have of what they ask for; those that lost their ClusterIP are not among them. */
  keepOwned(ports: readonly ServicePort[]): {
    readonly ports: readonly ServicePort[];
    readonly problems: readonly string[];
    readonly restrictions: ReadonlySet<Restriction>;
  } {
    const findings = new Findings();
    const kept = ports.flatMap((port) => this.#keepOwnedOf(port, findings));
    return { ports: kept, problems: findings.problems, restrictions: findings.restrictions };
  }

  #keepOwnedOf(port: ServicePort, findings: Findings): readonly ServicePort[] {
    const { protocol, clusterIp, nodePort, key } = port;
    const has = (destination: string, what: string): boolean => {
      const owner = this.ownerOf(destination);
      if (owner?.portKey === key) return true;
      // No owner: the Service asks for it only now, and the change that says so is still to come.
      if (owner) {
        const { serviceName, kind } = owner;
        findings.restrict(
          'taken',
          `${what} is not served: ${destination} is ${KIND_IN_WORDS[kind]} of Service "${serviceName}"`,
        );
      }
      return false;
    };
    const owned = (ips: readonly IpAddress[], field: string): readonly IpAddress[] => {
      const kept = ips.filter((ip) => has(addressPort(ip, port.port, protocol), `${field} ${formatIp(ip)}`));
      return kept.length === ips.length ? ips : kept;
    };
    if (!has(addressPort(clusterIp, port.port, protocol), `Port ${port.name}`)) return [];
    const externalIps = owned(port.externalIps, 'External IP');
    const loadBalancerVips = owned(port.loadBalancerVips, 'Load-balancer VIP');
    const ownsNodePort = nodePort === 0 || has(nodePortText(nodePort, protocol), `NodePort ${nodePort}`);
    if (externalIps === port.externalIps && loadBalancerVips === port.loadBalancerVips && ownsNodePort) return [port];
    return [withPolicyInUse({ ...port, externalIps, loadBalancerVips, nodePort: ownsNodePort ? nodePort : 0 })];
  }

  #change({ destination }: DestinationClaim, affected: Set<string>, change: () => void): void {
    const former = this.ownerOf(destination);
    change();
    const owner = this.ownerOf(destination);
    if (owner === former) return;
    if (former) affected.add(former.serviceName);
    const claims = this.#claims.get(destination);
    const first = Array.isArray(claims) ? claims.slice(0, 1 + TOLD_OF_CHANGE) : claims ? [claims] : [];
    for (const { serviceName } of first) affected.add(serviceName);
  }

  /** Behind or before those that are there. */
  #add(claim: DestinationClaim): void {
    const claims = this.#claims.get(claim.destination)!;
    if (Array.isArray(claims)) insertSorted(claims, claim, compareClaims);
    else this.#claims.set(claim.destination, [claims, claim].sort(compareClaims));
  }

  #remove(claim: DestinationClaim): void {
    const claims = this.#claims.get(claim.destination);
    if (!Array.isArray(claims)) {
      this.#claims.delete(claim.destination);
      return;
    }
    removeSorted(claims, claim, compareClaims);
    if (claims.length === 1) this.#claims.set(claim.destination, claims[0]!);
  }
}

function sameClaim(a: DestinationClaim, b: DestinationClaim): boolean {
  return a.destination === b.destination && a.portKey === b.portKey && compareClaims(a, b) === 0;
}

function addressPort(ip: IpAddress, port: number, protocol: Protocol): string {
  return `${formatIpPort(ip, port)}/${protocol}`;
}

function nodePortText(nodePort: number, protocol: Protocol): string {
  return `node port ${nodePort}/${protocol}`;
}
