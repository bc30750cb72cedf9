import { type Cidr, cidrContains, cidrEquals, formatCidr, ipEquals } from '../../core/index.ts';
import type { InterfaceAddress, Link } from '../../netlink/route/index.ts';
import { IFF_PROMISC } from '../../netlink/uapi/index.ts';
import type { InterfaceName } from '../protocol/environment.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';

/** What the kernel says about the bridge. */
export interface BridgeState {
  /** Undefined: there is no link of that name. */
  readonly link: Pick<Link, 'kind' | 'up' | 'flags' | 'vlanFiltering'> | undefined;
  readonly addresses: readonly Pick<InterfaceAddress, 'address' | 'prefixLength'>[];
}

/** What a pod needs of the link with the gateways' addresses. */
export interface DesiredGateways {
  /** Gateways it must carry, with the prefix of their subnet. */
  readonly gateways: readonly Cidr[];
  /** Gateways of all ranges of the network: other pods may need them. */
  readonly configured: readonly Cidr[];
  /** Replace addresses that are in the way. */
  readonly forceAddress: boolean;
}

/** What a pod needs of the bridge. */
export interface DesiredBridge extends DesiredGateways {
  readonly name: InterfaceName;
  /** Take in every frame. False leaves it as it is: others may want it. */
  readonly promiscuous: boolean;
  /** Look at VLANs. False leaves it as it is. */
  readonly vlanFiltering: boolean;
}

/** Addresses to take away and to give. */
export interface AddressPlan {
  readonly remove: readonly Cidr[];
  readonly add: readonly Cidr[];
}

/** What to do about it. */
export interface BridgePlan extends AddressPlan {
  readonly setUp: boolean;
  readonly setPromiscuous: boolean;
  readonly setVlanFiltering: boolean;
}

/**
 * Compares what is there with what is needed.
 *
 * @throws CniError 106 when the link is no bridge, or an address is in the way and may not be replaced
 */
export function planBridge({ link, addresses }: BridgeState, desired: DesiredBridge): BridgePlan {
  const { name } = desired;
  if (link && link.kind !== 'bridge') {
    throw new CniError(
      CNI_ERROR.BRIDGE_UNUSABLE,
      `Link "${name}" exists and is no bridge but ${link.kind ? `of kind "${link.kind}"` : 'a network device'}; remove it or choose another name by the key "bridge"`,
    );
  }
  return {
    setUp: link !== undefined && !link.up,
    setPromiscuous: desired.promiscuous && ((link?.flags ?? 0) & IFF_PROMISC) === 0,
    setVlanFiltering: desired.vlanFiltering && link !== undefined && !link.vlanFiltering,
    ...planAddresses('Bridge', name, addresses, desired),
  };
}

/**
 * Compares the addresses of the link that carries the gateways with what is needed.
 *
 * In the way are an IPv4 address that is no gateway of the network (the node's pod range has changed: its pods would
 * have a gateway they cannot reach back through) and an IPv6 address of an overlapping subnet. Other IPv6 addresses,
 * the link-local one for example, may stay; so may a gateway with a longer prefix within the network, of pods from before the range
 * was widened.
 *
 * @throws CniError 106 when an address is in the way and may not be replaced
 */
export function planAddresses(
  what: 'Bridge' | 'Link',
  name: string,
  addresses: BridgeState['addresses'],
  { gateways, configured, forceAddress }: DesiredGateways,
): AddressPlan {
  const present = addresses.map(({ address, prefixLength }) => ({ address, prefixLength }));
  const inTheWay = present.flatMap((found) => {
    const wanted = configured.find((gateway) => isInTheWay(found, gateway));
    const mayStay = configured.some((gateway) => cidrEquals(found, gateway) || isOfNarrowerRange(found, gateway));
    return wanted && !mayStay ? [{ found, wanted }] : [];
  });
  if (inTheWay[0] && !forceAddress) {
    const { found, wanted } = inTheWay[0];
    throw new CniError(
      CNI_ERROR.BRIDGE_UNUSABLE,
      `${what} "${name}" has the address ${formatCidr(found)} where the network needs ${formatCidr(wanted)}; if its pods are gone, delete it (ip link delete ${name}), or let "forceAddress": true replace the address`,
    );
  }
  return {
    remove: inTheWay.map(({ found }) => found),
    add: gateways.filter((gateway) => !present.some((found) => cidrEquals(gateway, found))),
  };
}

function isOfNarrowerRange(found: Cidr, gateway: Cidr): boolean {
  if (found.prefixLength <= gateway.prefixLength || !cidrContains(gateway, found.address)) return false;
  // The kernel gives a link an IPv6 address once.
  return found.address.family === 'IPv4' || !ipEquals(found.address, gateway.address);
}

function isInTheWay(found: Cidr, gateway: Cidr): boolean {
  if (found.address.family !== gateway.address.family) return false;
  return (
    found.address.family === 'IPv4' || cidrContains(found, gateway.address) || cidrContains(gateway, found.address)
  );
}
