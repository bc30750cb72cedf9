import { type Cidr, parseAddressWithPrefix } from '../../core/index.ts';
import type { JournalEntry } from '../../ipam/index.ts';
import { type BridgeConfig, parseBridgeConfig } from '../config/bridge-config.ts';
import { isolatedAsAsked } from '../config/config.ts';
import { NETWORK_MODES, type NetworkMode } from '../config/network-config.ts';
import type { WantedAttachment } from '../features/index.ts';
import { type Json, optional, optionalObject, optionalWord, textsAt } from '../protocol/json.ts';
import { wantedBy } from '../verbs/attachment-note.ts';

/** An attachment with what its interface was made with. */
export interface WantedLink extends WantedAttachment {
  readonly mode: NetworkMode;
  readonly bridge: BridgeConfig;
  /** Undefined: an earlier version made it, and did not note that. */
  readonly made: MadeLink | undefined;
}

/** How an ADD made the interface. */
export interface MadeLink {
  /** Of both ends, in bytes. */
  readonly mtu: number;
  /** The pod's end was left down. */
  readonly down: boolean;
  /** Addresses of the bridge, or of the link of the VLAN, with the prefix of their subnet. */
  readonly gateways: readonly Cidr[];
}

/** ETH_DATA_LEN, which the kernel gives a veth. */
const DEFAULT_MTU = 1500;

/** The interface that a journal entry tells of; undefined when its note is missing or not understood. */
export function wantedLink(network: string, entry: Pick<JournalEntry, 'owner' | 'note'>): WantedLink | undefined {
  const wanted = wantedBy(network, entry);
  if (!wanted || !entry.note) return undefined;
  try {
    return {
      ...wanted,
      mode: optionalWord(entry.note, 'mode', NETWORK_MODES) ?? 'bridge',
      bridge: isolatedAsAsked(parseBridgeConfig(entry.note), wanted.features),
      made: madeLink(optionalObject(entry.note, 'link')),
    };
  } catch {
    return undefined;
  }
}

function madeLink(link: Json | undefined): MadeLink | undefined {
  if (!link) return undefined;
  return {
    mtu: optional(link, 'mtu', 'number') ?? DEFAULT_MTU,
    down: optional(link, 'down', 'boolean') ?? false,
    gateways: textsAt(link, 'gateways').map(parseAddressWithPrefix),
  };
}
