import { release } from '../ipam/index.ts';
import { getLink, Netlink } from '../netlink/index.ts';
import { attachmentKey } from './attachment-key.ts';
import { type NetworkHeader, reservationsFor } from './config.ts';
import type { AttachmentEnvironment, InterfaceName } from './environment.ts';
import { CNI_ERROR, CniError } from './errors.ts';
import { deleteHostLink, deleteIfPresent } from './host-link.ts';
import { openPodNamespace, type PodNamespace } from './pod-namespace.ts';

/**
 * DEL: removes the interface, then gives its addresses back; in this order, so that an address is not handed out while
 * somebody still answers to it. Whatever is gone already is fine.
 *
 * The link is found by its host's end, whose name follows from the attachment: neither the pod's namespace nor the result
 * of the ADD is needed. A link that the reference plugin made, before the node was switched, is found in the pod.
 *
 * @param report told what was left alone
 * @throws CniError code 8 when CNI_NETNS is our own namespace; otherwise only what trying again may heal
 */
export function detach(
  header: NetworkHeader,
  environment: AttachmentEnvironment,
  report: (message: string) => void,
): void {
  const key = attachmentKey(header.name, environment);
  const pod = openIfThere(environment);
  try {
    const host = Netlink.openRoute();
    try {
      if (!deleteHostLink(host, key) && pod) deletePodLink(pod, environment.ifname, report);
    } finally {
      host.close();
    }
  } finally {
    pod?.close();
  }
  release({ dataDir: reservationsFor(header), network: header.name }, key.owner);
}

function openIfThere(environment: AttachmentEnvironment): PodNamespace | undefined {
  if (environment.netns === '') return undefined;
  try {
    return openPodNamespace(environment);
  } catch (error) {
    if (error instanceof CniError && error.cniCode === CNI_ERROR.INVALID_ENVIRONMENT) return undefined;
    throw error;
  }
}

function deletePodLink(pod: PodNamespace, ifname: InterfaceName, report: (message: string) => void): void {
  const link = getLink(pod.netlink, { name: ifname });
  if (!link) return;
  if (link.kind === 'veth') deleteIfPresent(pod.netlink, link.index);
  else report(`Left "${ifname}" in "${pod.path}" alone: it is no veth, so no bridge plugin made it`);
}
