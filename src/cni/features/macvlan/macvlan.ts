import { isExists, isUnsupported, KernelError } from '../../../core/index.ts';
import type { Netlink } from '../../../netlink/index.ts';
import {
  getLink,
  type Link,
  listAddresses,
  newAddress,
  newMacvlan,
  newRoute,
  setLink,
} from '../../../netlink/route/index.ts';
import { failpoint } from '../../../sys/index.ts';
import type { AssignedAddresses } from '../../link/addressing.ts';
import { deleteIfPresent, findHostLink } from '../../link/host-link.ts';
import type { PodNamespace } from '../../link/pod-namespace.ts';
import { writeSysctlIfPresent } from '../../link/sysctls.ts';
import type { AttachmentKey } from '../../protocol/attachment-key.ts';
import { CNI_ERROR, CniError } from '../../protocol/errors.ts';
import { macOfText } from '../../protocol/mac.ts';
import type { ResultRoute } from '../../protocol/result.ts';
import type { AttachmentFeature, SetUpContext } from '../feature.ts';
import { checkMacvlan } from './check-macvlan.ts';
import { collectAddresses, giveBackAddresses, ipamRequest } from './ipam.ts';
import { findMaster } from './master.ts';
import { MACVLAN_NAME } from './name.ts';
import { routesByPodNetwork } from './pod-routes.ts';

/**
 * A second interface for pods that ask for it by annotation: `macvlan0`, on the network of one of the node's own links, as
 * openshift-sdn made it. The pod gives it an address itself, or an IPAM plugin does; it is up.
 *
 * It lies in the pod's namespace alone. Whoever has no descriptor of that finds it by the number that the namespace has on the
 * host, which the host's end of the pod's veth pair names.
 */
export const macvlan: AttachmentFeature = {
  name: 'macvlan',

  // It is a link and routes.
  wantedIn: () => ({}),

  async setUp(context) {
    const { features, pod, host, hostLink, gateways } = context;
    const settings = features.macvlan!;
    const master = findMaster(host, settings);
    const link = makeLink(context, master);
    failpoint('macvlan');
    const assigned = await assignAddresses(context);
    const own = configureLink(context, link, assigned);
    const networks = routesByPodNetwork(gateways, listAddresses(host, { index: master.index }), settings.routes);
    const byPodNetwork = addRoutes(pod, hostLink.peerIndex, networks);
    const made = { name: MACVLAN_NAME, mac: link.address, mtu: link.mtu, sandbox: pod.path };
    return [{ ...made, ips: assigned.ips, routes: [...own, ...byPodNetwork] }];
  },

  // CHECK compares with the result of ADD. Annotation and rules may be others by now.
  check: () => [],
  checkInterface: checkMacvlan,

  leavePod({ key, host, pod }) {
    if (pod) {
      removeFrom(pod.netlink, key);
      return;
    }
    const hostLink = findHostLink(host, key);
    if (hostLink?.peerNetnsId === undefined) return;
    try {
      removeFrom(host, key, hostLink.peerNetnsId);
    } catch (error) {
      // The number means nothing any more: the namespace went this moment, with all that was in it.
      if (!(error instanceof KernelError && error.errnoName === 'EINVAL')) throw error;
    }
  },

  // Nothing is left of it on the host but addresses.
  tearDown: () => undefined,
  collect: () => undefined,
  giveBackAddresses,
  collectAddresses,
};

/** Makes the link in the pod, switched off. Throws CniError 104 when the pod has one of that name, 105 when the kernel cannot. */
function makeLink({ key, features, pod, host, undo }: SetUpContext, master: Link): Link {
  const mac = macOfText(`${key.alias}/${MACVLAN_NAME}`);
  const { mode } = features.macvlan!;
  const spec = { name: MACVLAN_NAME, link: master.index, mode, mac, netnsFd: pod.fd };
  const [refusal] = host.attempt([newMacvlan(spec)]);
  if (refusal && isExists(refusal)) {
    const message = `Interface "${MACVLAN_NAME}" already exists in the network namespace "${pod.path}"`;
    throw new CniError(CNI_ERROR.INTERFACE_EXISTS, message, { cause: refusal });
  }
  if (refusal && isUnsupported(refusal)) {
    const message = `Cannot make "${MACVLAN_NAME}": this kernel has no macvlan (CONFIG_MACVLAN)`;
    throw new CniError(CNI_ERROR.KERNEL_REFUSED, message, { cause: refusal });
  }
  if (refusal) throw refusal;
  // Not before: what is there already may be somebody else's.
  undo.add(`make ${MACVLAN_NAME}`, () => removeFrom(pod.netlink, key));
  const link = getLink(pod.netlink, { name: MACVLAN_NAME });
  if (link) return link;
  throw new CniError(CNI_ERROR.KERNEL_REFUSED, `Link "${MACVLAN_NAME}" vanished while it was set up; try again`);
}

async function assignAddresses({
  features,
  header,
  env,
  undo,
}: SetUpContext): Promise<Pick<AssignedAddresses, 'ips' | 'routes'>> {
  const { ipam } = features.macvlan!;
  if (!ipam) return { ips: [], routes: [] };
  const { addByDelegate, deleteByDelegate, findPlugin } = await import('../../verbs/delegate.ts');
  const request = ipamRequest({ header, env }, ipam);
  findPlugin(ipam.type, env);
  undo.add(`have addresses of ${MACVLAN_NAME} assigned by ${ipam.type}`, () =>
    deleteByDelegate(ipam.type, request.header, request.env),
  );
  return addByDelegate(ipam.type, request.header, request.env);
}

/**
 * Gives it its addresses and switches it on.
 *
 * @returns the routes through it that are new
 */
function configureLink(
  { key, pod }: SetUpContext,
  { index }: Link,
  { ips, routes }: Pick<AssignedAddresses, 'ips' | 'routes'>,
): ResultRoute[] {
  const hasIpv6 = ips.some(({ address }) => address.address.family === 'IPv6');
  pod.run(() => {
    // Whoever is on that network could otherwise make itself the pod's router.
    writeSysctlIfPresent(`net/ipv6/conf/${MACVLAN_NAME}/accept_ra`, 0);
    if (hasIpv6) writeSysctlIfPresent(`net/ipv6/conf/${MACVLAN_NAME}/disable_ipv6`, 0);
    // Neighbours may know an address by the MAC of the pod that had it before.
    writeSysctlIfPresent(`net/ipv4/conf/${MACVLAN_NAME}/arp_notify`, 1);
    writeSysctlIfPresent(`net/ipv6/conf/${MACVLAN_NAME}/ndisc_notify`, 1);
  });
  pod.netlink.execute(
    ...ips.map(({ address }) => newAddress({ index, ...address, noDad: false })),
    setLink(index, { alias: key.alias, up: true }),
  );
  const gatewayOf = ({ destination }: ResultRoute) =>
    ips.find(({ gateway }) => gateway?.family === destination.address.family)?.gateway;
  return addRoutes(
    pod,
    index,
    routes.map((route) => ({ ...route, gateway: route.gateway ?? gatewayOf(route) })),
  );
}

/** Adds routes but those whose place is taken, as by the default route of the first interface. Returns what was added. */
function addRoutes({ netlink }: PodNamespace, outInterface: number, routes: readonly ResultRoute[]): ResultRoute[] {
  const refusals = netlink.attempt(routes.map((route) => newRoute({ ...route, outInterface })));
  const refusal = refusals.find((error) => error && !isExists(error));
  if (refusal) throw refusal;
  return routes.filter((_, i) => !refusals[i]);
}

/** @param netnsId of the pod's namespace, when the conversation is about another */
function removeFrom(netlink: Netlink, key: AttachmentKey, netnsId?: number): void {
  const link = getLink(netlink, { name: MACVLAN_NAME, netnsId });
  // Without alias it was made by an ADD that died before it came to that.
  const isOwn = link?.kind === 'macvlan' && (link.alias === key.alias || link.alias === '');
  if (isOwn) deleteIfPresent(netlink, link.index, netnsId);
}
