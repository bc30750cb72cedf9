import { gatewayLinkName } from '../config/bridge-config.ts';
import type { ModeRules } from '../link/pod-network.ts';
import { isInterfaceName } from '../protocol/environment.ts';
import { invalidKey } from '../protocol/json.ts';

/** What mode `bridge` makes of a configuration. */
export const bridgeMode: ModeRules = {
  isAlwaysGateway: false,
  unusedKeys: [],
  whyUnused: '',

  checkBridge(bridge, isGateway) {
    const gatewayName = gatewayLinkName(bridge);
    if (!isGateway || isInterfaceName(gatewayName)) return;
    throw invalidKey('bridge', bridge.name, `with "vlan" the gateway is "${gatewayName}", which is no interface name`);
  },

  checkFeatures: () => undefined,
  reach: (bridge) => ({ link: gatewayLinkName(bridge), isShared: true, checksMac: bridge.macspoofchk }),
};
