import type { KubeProxyConfig, RoutesConfig } from '../../config/index.ts';
import { type RuleSettings, tunnelKind } from '../../routes/index.ts';
import { namedPodRanges } from '../pools/named-pod-ranges.ts';

/** What the configuration says about who may use the tunnel, and what is masqueraded. */
export function ruleSettings(
  routes: RoutesConfig,
  { masqueradeBit, detectLocal, pools }: Pick<KubeProxyConfig, 'masqueradeBit' | 'detectLocal' | 'pools'>,
): RuleSettings {
  const { mode, port, wireguard, masquerade } = routes;
  const tunnel = tunnelKind(routes);
  const podRanges = namedPodRanges({ detectLocal, pools });
  return {
    tunnelPort: tunnel === 'vxlan' ? port : undefined,
    wireguard: tunnel === 'wireguard' ? { port: wireguard.port, podRanges, mayBeDirect: mode === 'auto' } : undefined,
    // Not a shift: 1 << 31 is negative in JavaScript.
    masqueradeMark: 2 ** masqueradeBit,
    masquerade: masquerade && {
      ...masquerade,
      exempt: [...podRanges, ...masquerade.exempt],
      // Its pods are reached as the node is. Through a tunnel the answer would take another way than the question, which
      // reverse path filters and clouds do not let pass.
      keepsSourceToNodes: mode === 'host-gw',
    },
  };
}
