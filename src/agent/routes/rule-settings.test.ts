import { describe, expect, it } from 'vitest';
import type { MasqueradeConfig, RoutesConfig } from '../../config/index.ts';
import { formatCidr, parseCidr } from '../../core/index.ts';
import { ruleSettings } from './rule-settings.ts';

const MASQUERADE: MasqueradeConfig = {
  ownPods: ['IPv4'],
  sources: [],
  exempt: [parseCidr('10.0.0.0/8')],
  randomFully: true,
};
const routes = (mode: RoutesConfig['mode'], masquerade?: MasqueradeConfig): RoutesConfig => {
  const flannel = { annotations: false, subnetFile: undefined, networks: [] };
  return {
    mode,
    tunnel: 'vxlan',
    vni: 1,
    port: 8472,
    mtu: undefined,
    interfaceName: undefined,
    wireguard: { port: 51820, keepaliveSeconds: 0, keyFile: '/wireguard.key' },
    masquerade,
    clearNetworkUnavailable: true,
    flannel,
  };
};
const NODE = {
  masqueradeBit: 31,
  detectLocal: { mode: 'ClusterCIDR', cidrs: [parseCidr('10.244.0.0/16')] },
  pools: undefined,
} as const;
const POOLS = { cidrs: [parseCidr('10.128.0.0/12')], blockSizes: { IPv4: 26, IPv6: 122 }, reclaimMs: 900_000 };

describe('the settings of the rules beside the routes', () => {
  it.each([
    ['vxlan', 8472, false],
    ['auto', 8472, false],
    ['host-gw', undefined, true],
  ] as const)('--routes %s', (mode, tunnelPort, keepsSourceToNodes) => {
    const settings = ruleSettings(routes(mode, MASQUERADE), NODE);
    expect(settings).toMatchObject({ tunnelPort, masqueradeMark: 0x80000000, masquerade: { keepsSourceToNodes } });
    expect(settings.wireguard).toBeUndefined();
  });

  it.each(['wireguard', 'auto'] as const)('--routes %s, by WireGuard', (mode) => {
    const settings = ruleSettings({ ...routes(mode, MASQUERADE), tunnel: 'wireguard' }, NODE);
    expect(settings.masquerade!.keepsSourceToNodes).toBe(false);
    expect(settings.wireguard).toMatchObject({ port: 51820, mayBeDirect: mode === 'auto' });
    expect(settings.wireguard!.podRanges.map(formatCidr)).toEqual(['10.244.0.0/16']);
    expect(settings.tunnelPort).toBeUndefined();
  });

  it('the cluster CIDR and the pools keep the source as well', () => {
    const { masquerade } = ruleSettings(routes('vxlan', MASQUERADE), NODE);
    expect(masquerade!.exempt.map(formatCidr)).toEqual(['10.244.0.0/16', '10.0.0.0/8']);
    const other = ruleSettings(routes('vxlan', MASQUERADE), { ...NODE, detectLocal: { mode: 'NodeCIDR' } });
    expect(other.masquerade!.exempt).toHaveLength(1);
    const pooled = ruleSettings(routes('vxlan', MASQUERADE), { ...NODE, pools: POOLS });
    expect(pooled.masquerade!.exempt.map(formatCidr)).toContain('10.128.0.0/12');
    expect(ruleSettings(routes('vxlan'), NODE).masquerade).toBeUndefined();
  });
});
