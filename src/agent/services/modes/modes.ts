import type { KubeProxyConfig } from '../../../config/index.ts';
import type { Mode, ProxyMode } from '../../../proxy/index.ts';
import { iptablesMode } from '../../../proxy/iptables/index.ts';
import { ipvsMode } from '../../../proxy/ipvs/index.ts';
import { nftablesMode } from '../../../proxy/nftables/index.ts';

/** All modes there are, by name. */
export const MODES: Readonly<Record<ProxyMode, Mode<KubeProxyConfig>>> = {
  iptables: iptablesMode,
  nftables: nftablesMode,
  ipvs: ipvsMode,
};
