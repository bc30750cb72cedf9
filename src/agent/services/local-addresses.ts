import { type IpAddress, type IpFamily, parseIp } from '../../core/index.ts';
import { withNetlink } from '../../netlink/index.ts';
import { listAddresses, lookUpRoute } from '../../netlink/route/index.ts';
import { NETLINK_ROUTE } from '../../netlink/uapi/index.ts';
import { type LocalAddresses, localAddressesOf } from '../../proxy/index.ts';
import { IPVS_DEVICE } from '../../proxy/ipvs/index.ts';
import { hasSysctls, linkFacts } from '../../sys/index.ts';

/**
 * The addresses on this machine's interfaces, in the network namespace of the calling thread; unlike os.networkInterfaces() also
 * on those without a carrier.
 *
 * Those of kube-ipvs0 are of Services, put there by mode ipvs itself: taken for the node's, they would have NodePorts where a range of
 * `nodePortAddresses` holds them, and be taken from the device, as an address of the node is not to be there (kube-proxy leaves them
 * out as well). Of the others the node's own come with a network. An address alone (/32, /128) is put there for a Service by
 * whoever delivers it: kube-vip, keepalived. Where it is the node's own after all, as on some clouds, the Node object names it. One
 * that has a network may be there for a Service too (PureLB); AddressRules says which Services may have it.
 *
 * @throws KernelError, ERR_NETLINK_SOCKET, ERR_NETLINK_DECODE
 */
export function localAddresses(): LocalAddresses {
  // Asked for by netlink, a link waits for the lock of all links, spinning: where pods come and go that was most of a sync.
  const ofServices = hasSysctls(IPVS_DEVICE) ? linkFacts(IPVS_DEVICE)?.index : undefined;
  return localAddressesOf(
    withNetlink(NETLINK_ROUTE, (netlink) => listAddresses(netlink)),
    ofServices,
  );
}

/** Of documentation (RFC 5737, RFC 3849): only the default route leads there. */
const SOMEBODY = { IPv4: parseIp('192.0.2.1'), IPv6: parseIp('2001:db8::1') } as const;

/**
 * The address by which this machine reaches others, as its default route has it; undefined: there is none.
 *
 * @throws KernelError, ERR_NETLINK_SOCKET, ERR_NETLINK_DECODE
 */
export function ownSource(family: IpFamily): IpAddress | undefined {
  const answer = withNetlink(NETLINK_ROUTE, (netlink) => lookUpRoute(netlink, { destination: SOMEBODY[family] }));
  return answer.kind === 'route' ? answer.route.source : undefined;
}
