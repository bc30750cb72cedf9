import { atOnce, type Cidr, inSlices, type Steps, sameBytes, yielder } from '../../core/index.ts';
import { checkPrefixLength, decodeIp, ipFamilyOf } from '../address-family.ts';
import { readAttributes } from '../attribute.ts';
import type { DecodedAttributes } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import { readU64 } from '../integer.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { genlmsghdr } from '../uapi/genetlink.ts';
import * as uapi from '../uapi/wireguard.ts';
import { decodeEndpoint, type Endpoint } from './endpoint.ts';
import { type WireguardFamily, wireguardRequest } from './wireguard-request.ts';

/** What an attribute of 64 bits counts as that is missing. */
const ZERO = new Uint8Array(8);

/** A WireGuard device as the kernel describes it. */
export interface WireguardDevice {
  /** Of the link. */
  readonly index: number;
  readonly name: string;
  /** 32 bytes, a secret; undefined for none. */
  readonly privateKey: Uint8Array | undefined;
  readonly publicKey: Uint8Array | undefined;
  /** UDP. */
  readonly port: number;
  /** Of outer packets; 0 for none. */
  readonly fwmark: number;
  readonly peers: readonly WireguardPeer[];
}

/** A peer as the kernel describes it. */
export interface WireguardPeer {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Where it was told to be, or was last heard from; undefined before either. */
  readonly endpoint: Endpoint | undefined;
  /** 0 for none. */
  readonly keepaliveSeconds: number;
  /** Seconds since the epoch; undefined when there was none. */
  readonly lastHandshake: number | undefined;
  readonly receivedBytes: bigint;
  readonly sentBytes: bigint;
  readonly allowedIps: readonly Cidr[];
}

/**
 * The device with all its peers.
 *
 * @param netlink from `openWireguard`
 * @param index of the link
 * @throws KernelError ENODEV (`isNotFound`) when there is no such link, EOPNOTSUPP when it is of another kind; ERR_NETLINK_DECODE
 */
export function getWireguard(netlink: Netlink, family: WireguardFamily, index: number): WireguardDevice {
  return decodeWireguard(netlink.dump(wireguardQuery(family, index)));
}

/**
 * As `getWireguard`, without holding up the event loop, however many peers there are. Until it is done nothing else may be asked
 * of `netlink`.
 */
export async function getWireguardInSlices(
  netlink: Netlink,
  family: WireguardFamily,
  index: number,
): Promise<WireguardDevice> {
  const rest = yielder();
  const answers = await netlink.dumpAsync(wireguardQuery(family, index), async () => rest());
  return inSlices(decodeSteps(answers), rest);
}

/** The request behind `getWireguard`, to be dumped. */
export function wireguardQuery(family: WireguardFamily, index: number): NetlinkRequest {
  return wireguardRequest(family, 'WG_CMD_GET_DEVICE', index);
}

/**
 * Joins the answers to a `wireguardQuery`. The first tells the device; a peer that did not fit goes on in the next one, with
 * nothing but its key and more allowed addresses.
 *
 * @throws ERR_NETLINK_DECODE
 */
export function decodeWireguard(answers: readonly Uint8Array[]): WireguardDevice {
  return atOnce(decodeSteps(answers));
}

function* decodeSteps(answers: readonly Uint8Array[]): Steps<WireguardDevice> {
  const messages = answers.map((payload) => {
    genlmsghdr.decode(payload);
    return uapi.WGDEVICE.decode(payload, genlmsghdr.size);
  });
  const device = messages[0];
  if (device?.WGDEVICE_A_IFINDEX === undefined) {
    throw decodeError('WG_CMD_GET_DEVICE', 'its first part has no WGDEVICE_A_IFINDEX');
  }
  const peers: WireguardPeer[] = [];
  for (const { WGDEVICE_A_PEERS: list = new Uint8Array() } of messages) {
    for (const { value } of readAttributes(list, 0, 'WGDEVICE_A_PEERS')) {
      const peer = decodePeer(value);
      const last = peers.at(-1);
      if (!last || !sameBytes(last.publicKey, peer.publicKey)) peers.push(peer);
      else peers[peers.length - 1] = { ...last, allowedIps: [...last.allowedIps, ...peer.allowedIps] };
      yield;
    }
  }
  return {
    index: device.WGDEVICE_A_IFINDEX,
    name: device.WGDEVICE_A_IFNAME ?? '',
    privateKey: device.WGDEVICE_A_PRIVATE_KEY,
    publicKey: device.WGDEVICE_A_PUBLIC_KEY,
    port: device.WGDEVICE_A_LISTEN_PORT ?? 0,
    fwmark: device.WGDEVICE_A_FWMARK ?? 0,
    peers,
  };
}

function decodePeer(value: Uint8Array): WireguardPeer {
  const peer = uapi.WGPEER.decode(value);
  const { WGPEER_A_PUBLIC_KEY: publicKey, WGPEER_A_ENDPOINT: endpoint } = peer;
  if (!publicKey) throw decodeError('WGPEER', 'it has no WGPEER_A_PUBLIC_KEY');
  const allowedIps = peer.WGPEER_A_ALLOWEDIPS ?? new Uint8Array();
  return {
    publicKey,
    endpoint: endpoint && decodeEndpoint(endpoint),
    keepaliveSeconds: peer.WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL ?? 0,
    lastHandshake: lastHandshakeOf(peer),
    receivedBytes: readU64(peer.WGPEER_A_RX_BYTES ?? ZERO, 'WGPEER_A_RX_BYTES'),
    sentBytes: readU64(peer.WGPEER_A_TX_BYTES ?? ZERO, 'WGPEER_A_TX_BYTES'),
    allowedIps: [...readAttributes(allowedIps, 0, 'WGPEER_A_ALLOWEDIPS')].map((ip) => decodeAllowedIp(ip.value)),
  };
}

/** struct __kernel_timespec { s64 seconds; s64 nanoseconds; }, zero for never. */
function lastHandshakeOf(peer: DecodedAttributes<(typeof uapi.WGPEER)['declarations']>): number | undefined {
  const { WGPEER_A_LAST_HANDSHAKE_TIME: time = ZERO } = peer;
  const seconds = readU64(time.subarray(0, 8), 'WGPEER_A_LAST_HANDSHAKE_TIME');
  return seconds === 0n ? undefined : Number(seconds);
}

function decodeAllowedIp(value: Uint8Array): Cidr {
  const ip = uapi.WGALLOWEDIP.decode(value);
  const { WGALLOWEDIP_A_FAMILY: number, WGALLOWEDIP_A_IPADDR: bytes, WGALLOWEDIP_A_CIDR_MASK: prefixLength } = ip;
  const family = number === undefined ? undefined : ipFamilyOf(number);
  if (!family || !bytes || prefixLength === undefined) {
    throw decodeError('WGPEER_A_ALLOWEDIPS', 'it lacks a family, address or prefix length');
  }
  return {
    address: decodeIp(family, bytes, 'WGALLOWEDIP_A_IPADDR'),
    prefixLength: checkPrefixLength(family, prefixLength, 'WGALLOWEDIP_A_CIDR_MASK'),
  };
}
