import { type Cidr, cidrContains, formatIp, type IpAddress, NodeplaneError } from '../../core/index.ts';

/** How this node is attached to the network between the nodes in one family. */
export interface Attachment {
  /** Index of the interface that has the node's address. */
  readonly index: number;
  readonly name: string;
  readonly mtu: number;
  /** The node's address. */
  readonly address: IpAddress;
  /** The interface's own addresses with their prefixes: who is in one of them is reached without a router. */
  readonly prefixes: readonly Cidr[];
}

/** The network between the nodes, as this node sees it in one family. */
export interface Underlay extends Attachment {
  /** Destinations within the prefixes that others have routed through a gateway all the same. */
  readonly routed: readonly Cidr[];
}

/** How packets get to the pods of another node. */
export type RouteMode = 'host-gw' | 'vxlan' | 'wireguard' | 'auto';

/** All of them, for checks and messages. */
export const ROUTE_MODES: readonly RouteMode[] = ['host-gw', 'vxlan', 'wireguard', 'auto'];

/** Whether an address is reached through the underlay's interface without a router. */
export function isOnLink(address: IpAddress, { prefixes, routed }: Underlay): boolean {
  return isWithin(address, prefixes) && !isWithin(address, routed);
}

function isWithin(address: IpAddress, ranges: readonly Cidr[]): boolean {
  for (const range of ranges) if (cidrContains(range, address)) return true;
  return false;
}

/** No interface leads to the other nodes. */
export function noUnderlay(interfaceName: string | undefined, address: IpAddress): NodeplaneError {
  const message =
    interfaceName === undefined
      ? `Cannot find the way to other nodes: no interface has the address ${formatIp(address)} of the Node object; name the interface with --routes-interface`
      : `Cannot find the way to other nodes: there is no interface "${interfaceName}", or it has no ${address.family} address; correct --routes-interface`;
  return new NodeplaneError('ERR_ROUTES', message, { facts: { interface: interfaceName, address: formatIp(address) } });
}
