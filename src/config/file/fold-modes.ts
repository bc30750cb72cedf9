import type { Configuration } from './schema.ts';

/** The sections that hold the settings which every mode has. */
export interface ModeSections {
  readonly periods: 'iptables' | 'ipvs' | 'nftables';
  readonly masquerading: 'iptables' | 'nftables';
}

/** ipvs has sync periods of its own, but masquerades by iptables rules and takes the settings of these. */
export function sectionsOf(mode: string): ModeSections {
  if (mode === 'ipvs') return { periods: 'ipvs', masquerading: 'iptables' };
  if (mode === 'nftables') return { periods: 'nftables', masquerading: 'nftables' };
  return { periods: 'iptables', masquerading: 'iptables' };
}

/** Clears sync periods and masqueradeAll in the sections of the other modes: they are not in effect. */
export function foldModes(configuration: Configuration): Configuration {
  const { iptables, ipvs, nftables } = configuration;
  const inEffect = sectionsOf(configuration.mode);
  const periods = (section: ModeSections['periods']) =>
    section === inEffect.periods ? {} : { syncPeriod: 0, minSyncPeriod: 0 };
  const masquerading = (section: ModeSections['masquerading']) =>
    section === inEffect.masquerading ? {} : { masqueradeAll: false };
  return {
    ...configuration,
    iptables: { ...iptables, ...periods('iptables'), ...masquerading('iptables') },
    ipvs: { ...ipvs, ...periods('ipvs') },
    nftables: { ...nftables, ...periods('nftables'), ...masquerading('nftables') },
  };
}
