import { addressesHeld, beginDeletion, release } from '../../ipam/index.ts';
import { getLink } from '../../netlink/route/index.ts';
import { failpoint } from '../../sys/index.ts';
import { delegateOf, storeLocation } from '../config/config.ts';
import { deleteHostLink, deleteIfPresent } from '../link/host-link.ts';
import { openPodNamespace, type PodNamespace } from '../link/pod-namespace.ts';
import { withHost } from '../link/sockets.ts';
import { attachmentKey } from '../protocol/attachment-key.ts';
import { type AttachmentEnvironment, type InterfaceName, readAttachment } from '../protocol/environment.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import type { VerbRequest } from './request.ts';
import { leavePod, loadForTearDown, tearDown } from './tear-down.ts';

/**
 * DEL: removes the interface, then what the features made for it, then gives its addresses back; in this order, so that an
 * address is not handed out while somebody still answers to it. Whatever is gone already is fine. Taken down are the features
 * that the attachment's record names; all of them when it has none.
 *
 * The link is found by its host's end, whose name follows from the attachment: neither the pod's namespace nor the result
 * of the ADD is needed. A link that the reference plugin made, before the node was switched, is found in the pod.
 *
 * @throws CniError code 8 when CNI_NETNS is our own namespace; otherwise only what trying again may heal
 */
export async function detach({ header, env, netns, warn }: VerbRequest): Promise<undefined> {
  const environment = readAttachment(env, netns);
  const key = attachmentKey(header.name, environment);
  const location = storeLocation(header);
  const entry = beginDeletion(location, key.hostName);
  const features = await loadForTearDown(entry?.features);
  const pod = openIfThere(environment);
  try {
    await withHost(async (host) => {
      leavePod(features, { key, host, pod });
      if (!(await deleteHostLink(host, key)) && pod) deletePodLink(pod, environment.ifname, warn);
      failpoint('link-gone');
      if (features.length > 0) {
        tearDown(features, { key, host, addresses: addressesHeld(location, key.owner, key.hostName), warn });
      }
      failpoint('features-gone');
    });
  } finally {
    pod?.close();
  }
  const delegate = delegateOf(header);
  if (delegate !== undefined) await (await import('./delegate.ts')).deleteByDelegate(delegate, header, env);
  for (const feature of features) await feature.giveBackAddresses?.({ header, env, warn }, entry?.note);
  release(location, key.owner, key.hostName);
}

function openIfThere(environment: AttachmentEnvironment): PodNamespace | undefined {
  if (environment.netns === '' && environment.netnsFd === undefined) return undefined;
  try {
    return openPodNamespace(environment);
  } catch (error) {
    if (error instanceof CniError && error.cniCode === CNI_ERROR.INVALID_ENVIRONMENT) return undefined;
    throw error;
  }
}

function deletePodLink(pod: PodNamespace, ifname: InterfaceName, warn: (message: string) => void): void {
  const link = getLink(pod.netlink, { name: ifname });
  if (!link) return;
  if (link.kind === 'veth') deleteIfPresent(pod.netlink, link.index);
  else warn(`Left "${ifname}" in "${pod.path}" alone: it is no veth, so no bridge plugin made it`);
}
