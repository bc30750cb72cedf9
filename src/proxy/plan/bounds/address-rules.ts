import {
  type Cidr,
  cidrContains,
  compareText,
  formatCidr,
  formatIp,
  type IpAddress,
  specialRange,
  tryParseCidr,
  tryParseIp,
} from '../../../core/index.ts';
import { type EndpointSlice, type Node, nodeIpsOf, type Service, type ServiceCIDR } from '../../../kube/index.ts';
import { LIMITS } from './limits.ts';
import { LOCALHOST_STAND_INS } from './stand-ins.ts';

/** The Service the API server makes for itself. */
export const API_SERVER_SERVICE = 'default/kubernetes';

/** What the rules are made of: everything this node knows about addresses that belong to somebody. */
export interface AddressRulesInput {
  readonly serviceCidrs: readonly ServiceCIDR[];
  /** All Nodes that are known, this one included. */
  readonly nodes: Iterable<Node>;
  /** This node's addresses by its Node object and its settings; empty: they are not known. */
  readonly nodeIps: readonly IpAddress[];
  /** Addresses on the interfaces of this node that come with a network. */
  readonly ownAddresses: readonly IpAddress[];
  /** Where the agent itself reaches the API server; undefined: by a name, or there is none. */
  readonly apiServer: IpAddress | undefined;
  /** The Service `default/kubernetes` and its slices, as far as they are known. */
  readonly apiService: Service | undefined;
  readonly apiSlices: readonly EndpointSlice[];
  /** Where external IPs may be; empty: everywhere else. */
  readonly externalIpCidrs: readonly Cidr[];
}

/**
 * Which addresses no Service may have. As external IP or load-balancer VIP: whoever may create Services, or write their
 * status, would take over traffic to them (CVE-2020-8554). As ClusterIP: what goes there to another port is refused, and this
 * node would be cut off from itself. Immutable.
 */
export class AddressRules {
  readonly #serviceCidrs: readonly Cidr[];
  readonly #externalIpCidrs: readonly Cidr[];
  /** Whose an address is, by its text. */
  readonly #owners: ReadonlyMap<string, string>;
  readonly #ownAddresses: ReadonlySet<string>;
  readonly #knowsNodeIps: boolean;

  constructor(input: AddressRulesInput) {
    this.#serviceCidrs = input.serviceCidrs
      .flatMap(({ spec }) => spec?.cidrs ?? [])
      .flatMap((text) => tryParseCidr(text) ?? []);
    this.#externalIpCidrs = input.externalIpCidrs;
    this.#owners = ownersOf(input);
    this.#ownAddresses = new Set([...input.nodeIps, ...input.ownAddresses].map(formatIp));
    this.#knowsNodeIps = input.nodeIps.length > 0;
  }

  /**
   * Why the ClusterIP is refused, as the end of a sentence that begins with the address; undefined: it is not. Who chooses
   * ClusterIPs is trusted, and a Service in front of the API servers may have what is their address here: only what no network of
   * Services can hold is refused. Link-local ones can.
   */
  clusterIpRefusal(ip: IpAddress): string | undefined {
    if (this.#ownAddresses.has(formatIp(ip))) return 'is an address of this node';
    return specialRange(ip) === 'link-local' ? undefined : specialRefusal(ip);
  }

  /**
   * Why an external address is refused, as the end of a sentence that begins with the address; undefined: it is not.
   *
   * @param kind load-balancer VIPs are not bound to the list of allowed external IPs: who writes the status of Services is
   *   trusted to choose. Nor are they refused for being on an interface, where PureLB, keepalived and others put them with the
   *   mask of the network: the Node object and the settings say which of those the node is known by
   */
  refusal(ip: IpAddress, kind: 'externalIp' | 'loadBalancerVip'): string | undefined {
    const special = specialRefusal(ip);
    if (special !== undefined) return special;
    const owner = this.#owners.get(formatIp(ip));
    if (owner !== undefined) return `is ${owner}`;
    const mayBeOnInterface = kind === 'loadBalancerVip' && this.#knowsNodeIps;
    if (!mayBeOnInterface && this.#ownAddresses.has(formatIp(ip))) return 'is an address of this node';
    const cidr = this.#serviceCidrs.find((range) => cidrContains(range, ip));
    if (cidr) return `is within the range of ClusterIPs ${formatCidr(cidr)}`;
    if (kind === 'loadBalancerVip' || this.#externalIpCidrs.length === 0) return undefined;
    if (this.#externalIpCidrs.some((range) => cidrContains(range, ip))) return undefined;
    return 'is not within --external-ip-cidrs';
  }

  /** Whether the other one refuses the same, in the same words. */
  equals(other: AddressRules): boolean {
    return this.#signature() === other.#signature();
  }

  #signature(): string {
    const cidrs = [...this.#serviceCidrs, ...this.#externalIpCidrs].map(formatCidr);
    const owners = [...this.#owners].sort(([a], [b]) => compareText(a, b));
    const own = [...this.#ownAddresses].sort(compareText);
    return JSON.stringify([this.#serviceCidrs.length, cidrs, owners, own, this.#knowsNodeIps]);
  }
}

/** Why an address can be nobody's that others reach, as the end of a sentence; undefined: it can. */
export function specialRefusal(ip: IpAddress): string | undefined {
  const range = specialRange(ip);
  if (range === undefined) return undefined;
  return range === 'unspecified' ? 'is no address of a host' : `is a ${range} address`;
}

/** Of several reasons the last one entered is told: the API server's are the gravest. */
function ownersOf({ nodes, nodeIps, apiServer, apiService, apiSlices }: AddressRulesInput): Map<string, string> {
  const owners = new Map<string, string>();
  const enter = (text: string | undefined, owner: string): void => {
    const ip = text === undefined ? undefined : tryParseIp(text);
    if (ip) owners.set(formatIp(ip), owner);
  };
  for (const node of nodes) {
    for (const ip of nodeIpsOf(node)) owners.set(formatIp(ip), `an address of the node "${node.metadata.name}"`);
  }
  for (const ip of nodeIps) owners.set(formatIp(ip), 'an address of this node');
  // Whoever had it would get the connections of every node's processes to NodePorts at localhost.
  for (const ip of Object.values(LOCALHOST_STAND_INS)) owners.set(formatIp(ip), 'what stands in for localhost');
  const ofApiServer = "the API server's address";
  if (apiServer) owners.set(formatIp(apiServer), ofApiServer);
  const { clusterIP, clusterIPs = [] } = apiService?.spec ?? {};
  for (const text of [clusterIP, ...clusterIPs]) enter(text, ofApiServer);
  const listed = apiSlices.flatMap(({ endpoints = [] }) => endpoints.slice(0, LIMITS.apiServers));
  for (const { addresses = [] } of listed.slice(0, LIMITS.apiServers)) enter(addresses[0], ofApiServer);
  return owners;
}
