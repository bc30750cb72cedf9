import { listLinks } from '../../netlink/route/index.ts';
import type { PodNetwork } from '../link/pod-network.ts';
import { isPodLink } from '../protocol/attachment-key.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import { bridgeAddressing } from './bridge-addressing.ts';
import { checkBridge, connectToBridge } from './connect-bridge.ts';

/** Mode `bridge`: pods are ports of a bridge, which is also their gateway unless the configuration says otherwise. */
export const bridgeNetwork: PodNetwork = {
  addressing: bridgeAddressing,
  checkNode: checkBridge,
  connect: connectToBridge,

  async check(checking, hostLink) {
    const { checkBridgePort } = await import('./check-bridge.ts');
    return checkBridgePort(checking, hostLink);
  },

  checkPods(host, { name, bridge }) {
    const links = listLinks(host);
    const master = links.find((link) => link.name === bridge.name)?.index ?? 0;
    const pods = links.filter((link) => isPodLink(link, name));
    const lost = pods.filter((link) => master === 0 || link.master !== master);
    // One among others may have been taken out on purpose: the node is no less ready for it.
    if (lost.length === 0 || (lost.length === 1 && pods.length > 1)) return;
    throw new CniError(
      CNI_ERROR.LIMITED_CONNECTIVITY,
      `${lost.length} pods of network "${name}" are not connected to the bridge "${bridge.name}", the first is ${lost[0]!.alias}`,
    );
  },
};
