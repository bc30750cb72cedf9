import { BRIDGE_KEYS } from '../config/bridge-config.ts';
import type { PodNetwork } from '../link/pod-network.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import { connectRouted } from './connect-routed.ts';
import { routedAddressing } from './routed-addressing.ts';

/** Mode `routed`: each pod has a link and routes of its own on the node, which is its only neighbour. */
export const routedNetwork: PodNetwork = {
  config: {
    // A routed pod knows nobody else.
    isAlwaysGateway: true,
    unusedKeys: BRIDGE_KEYS,
    whyUnused: 'which has no bridge',
    checkBridge: () => undefined,

    checkFeatures({ ipMasq, firewall }, ipam) {
      if (ipam.kind === 'delegate' && ipMasq) {
        // It hands out single addresses, so what pods send to each other would be masqueraded, too.
        const message = `Key "ipMasq" has the unsupported value true in mode "routed" with the IPAM plugin "${ipam.type}", use host-local`;
        throw new CniError(CNI_ERROR.UNSUPPORTED_FIELD, message);
      }
      if (firewall?.ingressPolicy === 'same-bridge') {
        const message =
          'Key "ingressPolicy" has the unsupported value "same-bridge" in mode "routed", where no pods share a bridge, use "isolated"';
        throw new CniError(CNI_ERROR.UNSUPPORTED_FIELD, message);
      }
    },
  },

  addressing: routedAddressing,

  reach: (_, { hostName }) => ({ link: hostName, isShared: false, checksMac: false }),

  checkNode: () => [],

  connect: connectRouted,

  async check(checking, hostLink) {
    const { checkRouted } = await import('./check-routed.ts');
    checkRouted(checking, hostLink);
    return undefined;
  },

  checkPods: () => undefined,
};
