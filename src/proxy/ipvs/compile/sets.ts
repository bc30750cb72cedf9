import {
  addressBits,
  formatCidr,
  formatIp,
  type IpAddress,
  type IpFamily,
  type IpProtocol,
  networkOf,
  protocolWord,
} from '../../../core/index.ts';

/** What the members of a set are. */
export type SetType = 'hash:ip' | 'hash:ip,port' | 'hash:ip,port,ip' | 'hash:ip,port,net' | 'bitmap:port';

/**
 * The sets by IPv4 name. Those of kube-proxy's IPVS mode keep its names and types, so that either takes over the other's;
 * the rest, marked "ours", are what its mode has no need of: it neither rejects nor drops, and knows no way around policy Local.
 */
export const SETS = {
  /** kube-proxy's endpoints that may reach themselves. Empty: ours are found by rules, wherever they are (KUBE-IPVS-HAIRPIN). */
  'KUBE-LOOP-BACK': 'hash:ip,port,ip',
  'KUBE-CLUSTER-IP': 'hash:ip,port',
  'KUBE-EXTERNAL-IP': 'hash:ip,port',
  /** External IPs of Services with policy Local. */
  'KUBE-EXTERNAL-IP-LOCAL': 'hash:ip,port',
  'KUBE-LOAD-BALANCER': 'hash:ip,port',
  /** Of those, the ones of Services with policy Local. */
  'KUBE-LOAD-BALANCER-LOCAL': 'hash:ip,port',
  /** Of those, the ones with source ranges. */
  'KUBE-LOAD-BALANCER-FW': 'hash:ip,port',
  /** VIPs the node may use with the VIP itself as its source. */
  'KUBE-LOAD-BALANCER-SOURCE-IP': 'hash:ip,port,ip',
  'KUBE-LOAD-BALANCER-SOURCE-CIDR': 'hash:ip,port,net',
  'KUBE-NODE-PORT-TCP': 'bitmap:port',
  'KUBE-NODE-PORT-UDP': 'bitmap:port',
  'KUBE-NODE-PORT-SCTP-HASH': 'hash:ip,port',
  'KUBE-NODE-PORT-LOCAL-TCP': 'bitmap:port',
  'KUBE-NODE-PORT-LOCAL-UDP': 'bitmap:port',
  'KUBE-NODE-PORT-LOCAL-SCTP-HASH': 'hash:ip,port',
  'KUBE-HEALTH-CHECK-NODE-PORT': 'bitmap:port',
  /** The addresses bound to kube-ipvs0. */
  'KUBE-IPVS-IPS': 'hash:ip',
  /** Ours: destinations without any endpoint. */
  'KUBE-REJECT': 'hash:ip,port',
  /** Ours: ClusterIPs of policy Local without an endpoint here. */
  'KUBE-DROP': 'hash:ip,port',
  /** Ours: external destinations of policy Local without an endpoint here; the node and its pods pass. */
  'KUBE-DROP-OUTSIDE': 'hash:ip,port',
  /** Ours: external destinations of policy Local with the mark of the virtual server for traffic from outside. */
  'KUBE-IPVS-MARK': 'hash:ip,port',
  /** Ours: the virtual servers we made. Tells ours from foreign ones after a restart. */
  'KUBE-IPVS-SERVERS': 'hash:ip,port',
} as const satisfies Record<string, SetType>;

/** A set by its IPv4 name; `kernelSetName` gives that of the kernel. */
export type SetName = keyof typeof SETS;
export const SET_NAMES = Object.keys(SETS) as SetName[];

/** The set whose members carry a firewall mark (extension skbinfo). */
export const MARK_SET: SetName = 'KUBE-IPVS-MARK';

/** IPSET_MAXNAMELEN of <linux/netfilter/ipset/ip_set.h> is 32 with its terminating zero. */
const MAX_NAME = 31;

/** How a set is called in the kernel: `KUBE-6-…` for IPv6, cut to what fits, as kube-proxy does. */
export function kernelSetName(family: IpFamily, name: SetName): string {
  return (family === 'IPv4' ? name : name.replace('KUBE-', 'KUBE-6-')).slice(0, MAX_NAME);
}

/** A member of a set. */
export type Element =
  | { readonly type: 'hash:ip'; readonly address: IpAddress }
  | {
      readonly type: 'hash:ip,port';
      readonly address: IpAddress;
      readonly protocol: IpProtocol;
      readonly port: number;
      /** Firewall mark packets to it get. @default none */
      readonly mark?: number;
    }
  | {
      readonly type: 'hash:ip,port,ip';
      readonly address: IpAddress;
      readonly protocol: IpProtocol;
      readonly port: number;
      readonly second: IpAddress;
    }
  | {
      readonly type: 'hash:ip,port,net';
      readonly address: IpAddress;
      readonly protocol: IpProtocol;
      readonly port: number;
      readonly network: IpAddress;
      readonly prefixLength: number;
    }
  | { readonly type: 'bitmap:port'; readonly port: number };

/** A member and the set it is in. */
export interface SetElement {
  readonly set: SetName;
  readonly element: Element;
}

/** What tells members of a set apart, as `ipset list` writes it: `10.96.0.1,tcp:80,10.0.0.0/8`. The mark is not part of it. */
export function elementText(element: Element): string {
  switch (element.type) {
    case 'hash:ip':
      return formatIp(element.address);
    case 'bitmap:port':
      return String(element.port);
    case 'hash:ip,port':
      return target(element);
    case 'hash:ip,port,ip':
      return `${target(element)},${formatIp(element.second)}`;
    case 'hash:ip,port,net': {
      const { network, prefixLength } = element;
      const whole = prefixLength === addressBits(network.family);
      const address = networkOf(network, prefixLength);
      return `${target(element)},${whole ? formatIp(address) : formatCidr({ address, prefixLength })}`;
    }
    default:
      return element satisfies never;
  }
}

/** Unique among the members of all sets. */
export function elementKey({ set, element }: SetElement): string {
  return `${set} ${elementText(element)}`;
}

/** Whether two members with one key are the same in everything else too. */
export function sameElement(a: SetElement, b: SetElement): boolean {
  return markOf(a) === markOf(b);
}

function markOf({ element }: SetElement): number | undefined {
  return element.type === 'hash:ip,port' ? element.mark : undefined;
}

function target(element: {
  readonly address: IpAddress;
  readonly protocol: IpProtocol;
  readonly port: number;
}): string {
  return `${formatIp(element.address)},${protocolWord(element.protocol)}:${element.port}`;
}
