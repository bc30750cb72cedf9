import { formatCidr, formatMac, parseAddressWithPrefix } from '../../core/index.ts';
import type { AttachmentNote, JournalEntry } from '../../ipam/index.ts';
import { BRIDGE_KEYS, parseBridgeConfig } from '../config/bridge-config.ts';
import { FEATURE_KEYS, parseFeatures } from '../config/feature-config.ts';
import { NETWORK_MODES } from '../config/network-config.ts';
import { runtimeConfigOf } from '../config/runtime-config.ts';
import type { WantedAttachment } from '../features/index.ts';
import type { PodIp } from '../link/addressing.ts';
import type { Attaching } from '../link/attaching.ts';
import { modeRules, podNetwork } from '../pod-networks.ts';
import { keyOfEntry } from '../protocol/attachment-key.ts';
import { optional, optionalWord, textsAt } from '../protocol/json.ts';
import { parseMac, podMac } from '../protocol/mac.ts';
import { wantedAttachment } from './wanted-features.ts';

/** Keys of the configuration on which the features of an attachment depend, besides those of the runtime. */
const KEYS = ['mode', ...BRIDGE_KEYS, ...FEATURE_KEYS] as const;

/**
 * What to note about an attachment so that its rules and its interface can be compared and brought back when its
 * configuration is not at hand: the keys of the configuration as they came, because their parser outlives the form of
 * the rules, with addresses and MAC of the pod and what its link was made with.
 *
 * @param ips what the address management gives the pod
 */
export function attachmentNote(
  { config, header: { raw }, key }: Pick<Attaching, 'config' | 'header' | 'key'>,
  ips: readonly PodIp[],
): AttachmentNote {
  const { derive } = podNetwork(config.mode).addressing;
  const addressing = derive(config, { ips, routes: [], dns: {} });
  const { portMappings, bandwidth } = runtimeConfigOf(raw);
  const wanted = wantedAttachment(config, key, addressing.ips, podMac(config.mac, key, addressing.ips));
  return {
    ...Object.fromEntries(KEYS.map((name) => [name, raw[name]])),
    // DEL has to find who gave the second interface its addresses; the rest of the key is the network's.
    macvlan: config.features.macvlan && { ipam: config.features.macvlan.ipam },
    runtimeConfig: { portMappings, bandwidth },
    ips: wanted.ips.map(({ address }) => formatCidr(address)),
    mac: formatMac(wanted.mac),
    link: {
      mtu: config.mtu,
      down: config.disableContainerInterface || undefined,
      gateways: addressing.bridgeAddresses.map(formatCidr),
    },
  };
}

/** The attachment that a journal entry tells of; undefined when its note is missing or not understood. */
export function wantedBy(network: string, entry: Pick<JournalEntry, 'owner' | 'note'>): WantedAttachment | undefined {
  const { note } = entry;
  if (!note) return undefined;
  try {
    const mac = parseMac(optional(note, 'mac', 'string') ?? '');
    if (!mac) return undefined;
    const key = keyOfEntry(network, entry);
    const { reach } = modeRules(optionalWord(note, 'mode', NETWORK_MODES) ?? 'bridge');
    return {
      key,
      reach: reach(parseBridgeConfig(note), key),
      features: parseFeatures(note, runtimeConfigOf(note)),
      ips: textsAt(note, 'ips').map((text) => ({ address: parseAddressWithPrefix(text) })),
      mac,
    };
  } catch {
    return undefined;
  }
}
