import { BRIDGE_KEYS } from '../config/bridge-config.ts';
import type { ModeRules } from '../link/pod-network.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';

/** What mode `routed` makes of a configuration. */
export const routedMode: ModeRules = {
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

  reach: (_, { hostName }) => ({ link: hostName, isShared: false, checksMac: false }),
};
