import type { IpAddress } from '../../core/index.ts';
import type { StandingAttachment } from '../../ipam/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { getLink, type Link, listAddresses, listLinks } from '../../netlink/route/index.ts';
import { RT_SCOPE_UNIVERSE } from '../../netlink/uapi/index.ts';
import { FEATURES } from '../features/index.ts';
import { isOf } from '../link/host-link.ts';
import { attachmentKey } from '../protocol/attachment-key.ts';
import type { ContainerId, InterfaceName, NetworkName } from '../protocol/environment.ts';

/**
 * The attachments of a network as the kernel has them: the alias of the host's end says whose a link is, and the other end,
 * asked for by the number of its namespace, which addresses it has. Which features they have nobody knows: all are named, for
 * the end.
 *
 * @throws KernelError, ERR_NETLINK_DECODE
 */
export function standingAttachments(host: Netlink, network: NetworkName): StandingAttachment[] {
  const features = FEATURES.map(({ name }) => name);
  return listLinks(host).flatMap((link) => {
    const [of, containerId, ifname] = link.alias.split('/');
    if (of !== network || !containerId || !ifname) return [];
    const key = attachmentKey(network, { containerId: containerId as ContainerId, ifname: ifname as InterfaceName });
    if (link.name !== key.hostName || !isOf(link, key)) return [];
    return { owner: key.owner, name: key.hostName, features, addresses: addressesBehind(host, link) };
  });
}

/** Those of the pod's end. None when the pod goes away meanwhile. */
function addressesBehind(host: Netlink, { index, peerIndex, peerNetnsId }: Link): IpAddress[] {
  try {
    const addresses = listAddresses(host, { index: peerIndex, netnsId: peerNetnsId });
    return addresses.filter(({ scope }) => scope === RT_SCOPE_UNIVERSE).map(({ address }) => address);
  } catch (error) {
    if (getLink(host, { index }) === undefined) return [];
    throw error;
  }
}
