import type { Cidr } from '../../core/index.ts';
import { familyNumber } from '../address-family.ts';
import { AttributeWriter } from '../attribute.ts';
import type { AttributeValues } from '../attribute-set.ts';
import type { NetlinkRequest } from '../message.ts';
import * as uapi from '../uapi/wireguard.ts';
import { type Endpoint, encodeEndpoint } from './endpoint.ts';
import { checkKey } from './key.ts';
import { type DeviceAttributes, type WireguardFamily, wireguardRequest } from './wireguard-request.ts';

/** What to change of a peer, which is made when there is none; what is left out stays. */
export interface PeerChange {
  /** 32 bytes: the peer's name. A peer with the device's own key is passed over in silence. */
  readonly publicKey: Uint8Array;
  /** Remove it; nothing else counts then. No error when there is none. @default false */
  readonly remove?: boolean | undefined;
  /** Do nothing when there is no such peer. @default false */
  readonly updateOnly?: boolean | undefined;
  /** 32 bytes; zeros for none. */
  readonly presharedKey?: Uint8Array | undefined;
  readonly endpoint?: Endpoint | undefined;
  /** Seconds between packets that keep a path open, at most 65535; 0 for none. */
  readonly keepaliveSeconds?: number | undefined;
  /** Added to those it has. One that another peer has is moved from there, in one step. */
  readonly allowedIps?: readonly Cidr[] | undefined;
  /** `allowedIps` take the place of those it has. @default false */
  readonly replaceAllowedIps?: boolean | undefined;
}

/** What to change of a device; what is left out stays. */
export interface WireguardChange {
  /** 32 bytes; zeros for none. A peer with its public key is removed. */
  readonly privateKey?: Uint8Array | undefined;
  /** UDP; 0 for one the kernel chooses. */
  readonly port?: number | undefined;
  /** Of outer packets; 0 for none. */
  readonly fwmark?: number | undefined;
  readonly peers?: readonly PeerChange[] | undefined;
  /** `peers` take the place of all there are, which ends the sessions of those that stay too. @default false */
  readonly replacePeers?: boolean | undefined;
}

/** Of the list of peers in one message, whose length is a number of 16 bits. */
const LIST_LIMIT = 48 << 10;
/** Of a peer without its allowed addresses: more than it can have. */
const PEER_SIZE = 160;
/** Of an allowed address with its headers, IPv6. */
const ALLOWED_IP_SIZE = 40;

/**
 * Changes a WireGuard device, in as many messages as it takes, to be sent in this order. A change that is refused leaves
 * what came before it. ENODEV (`isNotFound`) when there is no such link, EOPNOTSUPP when it is of another kind.
 *
 * @param index of the link
 * @throws ERR_ENCODE for keys that have not 32 bytes
 */
export function setWireguard(family: WireguardFamily, index: number, change: WireguardChange): NetlinkRequest[] {
  const lists = peerLists(change.peers ?? []);
  return (lists.length === 0 ? [undefined] : lists).map((peers, message) =>
    wireguardRequest(family, 'WG_CMD_SET_DEVICE', index, {
      ...(message === 0 && deviceAttributes(change)),
      WGDEVICE_A_PEERS: peers,
    }),
  );
}

function deviceAttributes({ privateKey, port, fwmark, replacePeers }: WireguardChange): DeviceAttributes {
  return {
    WGDEVICE_A_PRIVATE_KEY: privateKey && checkKey(privateKey, 'private key'),
    WGDEVICE_A_LISTEN_PORT: port,
    WGDEVICE_A_FWMARK: fwmark,
    WGDEVICE_A_FLAGS: replacePeers ? uapi.WGDEVICE_F_REPLACE_PEERS : undefined,
  };
}

/** The peers as lists of a message each. A peer with many allowed addresses goes on in the next. */
function peerLists(peers: readonly PeerChange[]): Uint8Array[] {
  const lists: Uint8Array[] = [];
  let list = new AttributeWriter();
  for (const peer of peers) {
    const allowedIps = peer.remove ? [] : (peer.allowedIps ?? []);
    let at = 0;
    do {
      if (list.bytes.length + PEER_SIZE + ALLOWED_IP_SIZE > LIST_LIMIT) {
        lists.push(list.bytes.written());
        list = new AttributeWriter();
      }
      const room = Math.floor((LIST_LIMIT - list.bytes.length - PEER_SIZE) / ALLOWED_IP_SIZE);
      appendPeer(list, at === 0 ? firstPart(peer) : laterPart(peer), allowedIps.slice(at, at + room));
      at += room;
    } while (at < allowedIps.length);
  }
  if (list.bytes.length > 0) lists.push(list.bytes.written());
  return lists;
}

type PeerAttributes = AttributeValues<(typeof uapi.WGPEER)['declarations']>;

function firstPart(peer: PeerChange): PeerAttributes {
  const publicKey = checkKey(peer.publicKey, 'public key');
  if (peer.remove) return { WGPEER_A_PUBLIC_KEY: publicKey, WGPEER_A_FLAGS: uapi.WGPEER_F_REMOVE_ME };
  const flags =
    (peer.replaceAllowedIps ? uapi.WGPEER_F_REPLACE_ALLOWEDIPS : 0) | (peer.updateOnly ? uapi.WGPEER_F_UPDATE_ONLY : 0);
  return {
    WGPEER_A_PUBLIC_KEY: publicKey,
    WGPEER_A_FLAGS: flags === 0 ? undefined : flags,
    WGPEER_A_PRESHARED_KEY: peer.presharedKey && checkKey(peer.presharedKey, 'preshared key'),
    WGPEER_A_ENDPOINT: peer.endpoint && encodeEndpoint(peer.endpoint),
    WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL: peer.keepaliveSeconds,
  };
}

/** Replacing again would undo the first part; and what the first part has not made, this must not make. */
function laterPart({ publicKey }: PeerChange): PeerAttributes {
  return { WGPEER_A_PUBLIC_KEY: publicKey, WGPEER_A_FLAGS: uapi.WGPEER_F_UPDATE_ONLY };
}

function appendPeer(list: AttributeWriter, attributes: PeerAttributes, allowedIps: readonly Cidr[]): void {
  const peer = list.nest(uapi.WG_LIST_ITEM);
  uapi.WGPEER.encode(list, attributes);
  if (allowedIps.length > 0) {
    const ips = list.nest(uapi.WGPEER.declarations.WGPEER_A_ALLOWEDIPS[0]);
    for (const { address, prefixLength } of allowedIps) {
      const ip = list.nest(uapi.WG_LIST_ITEM);
      uapi.WGALLOWEDIP.encode(list, {
        WGALLOWEDIP_A_FAMILY: familyNumber(address.family),
        WGALLOWEDIP_A_IPADDR: address.bytes,
        WGALLOWEDIP_A_CIDR_MASK: prefixLength,
      });
      list.end(ip, 'WGPEER_A_ALLOWEDIPS');
    }
    list.end(ips, 'WGPEER_A_ALLOWEDIPS');
  }
  list.end(peer, 'WGDEVICE_A_PEERS');
}
