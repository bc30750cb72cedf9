import { formatIp, isExists, isNotFound, parseIp } from '../../core/index.ts';
import {
  deleteAddress,
  listAddresses,
  newAddress,
  newNeighbour,
  newRoute,
  setLink,
} from '../../netlink/route/index.ts';
import { IFA_F_DADFAILED, IFA_F_TENTATIVE, IFF_UP } from '../../netlink/uapi/index.ts';
import { hasSysctls, linkFacts } from '../../sys/index.ts';
import type { InterfaceName } from '../protocol/environment.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import type { ResultRoute } from '../protocol/result.ts';
import type { Addressing } from './addressing.ts';
import type { Attaching } from './attaching.ts';
import type { HostLink } from './host-link.ts';
import type { PodNamespace } from './pod-namespace.ts';
import { writeSysctlIfPresent } from './sysctls.ts';

const LOOPBACK_ADDRESS = parseIp('127.0.0.1');
const LONGEST_DAD_MS = 5000;
const DAD_POLL_MS = 50;

/** Checks that the interface's name is free in the pod. Throws CniError 104. */
export function checkInterfaceAbsent(pod: PodNamespace, ifname: InterfaceName): void {
  if (!pod.run(() => hasSysctls(ifname))) return;
  throw new CniError(
    CNI_ERROR.INTERFACE_EXISTS,
    `Interface "${ifname}" already exists in the network namespace "${pod.path}"; send DEL before another ADD`,
  );
}

/**
 * Gives the pod's end its addresses and routes and switches it on, and the loopback with it.
 *
 * A route that is there already, such as the default route of an interface attached before, stays: the first one wins.
 *
 * @returns the routes that lead through the interface now
 */
export function configurePodLink(
  { config, key, pod, undo }: Attaching,
  hostLink: HostLink,
  { ips, routes, families, peerGateways }: Addressing,
): ResultRoute[] {
  const { ifname } = key.owner;
  const index = hostLink.peerIndex;
  const hasIpv6 = families.has('IPv6');
  const loopback = pod.run(() => {
    // Another pod on the bridge could otherwise announce itself as a router.
    writeSysctlIfPresent(`net/ipv6/conf/${ifname}/accept_ra`, 0);
    if (config.enabledad) {
      writeSysctlIfPresent(`net/ipv6/conf/${ifname}/enhanced_dad`, 1);
      writeSysctlIfPresent(`net/ipv6/conf/${ifname}/accept_dad`, 1);
    }
    if (hasIpv6) {
      // A runtime may have started the pod with IPv6 switched off.
      writeSysctlIfPresent(`net/ipv6/conf/${ifname}/disable_ipv6`, 0);
      if (writeSysctlIfPresent('net/ipv6/conf/lo/disable_ipv6', 0)) {
        undo.add('enable IPv6 on lo', () =>
          pod.run(() => void writeSysctlIfPresent('net/ipv6/conf/lo/disable_ipv6', 1)),
        );
      }
    }
    return linkFacts('lo');
  });
  const noDad = config.enabledad ? false : undefined;
  // First, because the host's end is on: the kernel takes one that has no carrier for a while out of service.
  const requests = config.disableContainerInterface ? [] : [setLink(index, { up: true })];
  for (const { address } of ips) requests.push(newAddress({ index, ...address, noDad }));
  if (loopback && (loopback.flags & IFF_UP) === 0) {
    undo.add('set lo up', () => setDownAgain(pod, loopback.index));
    requests.push(setLink(loopback.index, { up: true }));
  }
  for (const ip of peerGateways) requests.push(newNeighbour({ index, ip, lladdr: hostLink.address }));
  const routeRequests = routes.map(({ destination, gateway, ...rest }) =>
    newRoute({ destination, gateway, outInterface: index, ...rest }),
  );
  const refusals = pod.netlink.attempt([...requests, ...routeRequests]);
  const isThere = (i: number) => i >= requests.length && isExists(refusals[i]);
  const refusal = refusals.find((error, i) => error && !isThere(i));
  if (refusal) throw refusal;
  if (config.enabledad && hasIpv6) waitForDad(pod, index, ifname);
  return routes.filter((_, i) => !isThere(requests.length + i));
}

/**
 * Waits until no IPv6 address of the link is tentative any more.
 *
 * @throws CniError 105 when somebody else has one of them, or after five seconds
 */
function waitForDad(pod: PodNamespace, index: number, ifname: InterfaceName): void {
  for (let waitedMs = 0; ; waitedMs += DAD_POLL_MS) {
    const addresses = listAddresses(pod.netlink, { index, family: 'IPv6' });
    const duplicate = addresses.find(({ flags }) => (flags & IFA_F_DADFAILED) !== 0);
    if (duplicate) {
      throw new CniError(
        CNI_ERROR.KERNEL_REFUSED,
        `Address ${formatIp(duplicate.address)} of "${ifname}" is used by somebody else on the link`,
      );
    }
    if (!addresses.some(({ flags }) => (flags & IFA_F_TENTATIVE) !== 0)) return;
    if (waitedMs >= LONGEST_DAD_MS) {
      throw new CniError(CNI_ERROR.KERNEL_REFUSED, `IPv6 addresses of "${ifname}" are not usable after 5 seconds`);
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, DAD_POLL_MS);
  }
}

/** The kernel gives a loopback that comes up 127.0.0.1/8 and ::1/128; the former stays when it goes down. */
function setDownAgain({ netlink }: PodNamespace, index: number): void {
  netlink.execute(setLink(index, { up: false }));
  const [refusal] = netlink.attempt([deleteAddress({ index, address: LOOPBACK_ADDRESS, prefixLength: 8 })]);
  if (refusal && !isNotFound(refusal)) throw refusal;
}
