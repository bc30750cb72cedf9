// <linux/wireguard.h>: WireGuard devices and their peers. Host byte order, except in socket addresses.
import { attributeSet } from '../attribute-set.ts';
import { NLA_F_NESTED } from './netlink.ts';

export const WG_GENL_NAME = 'wireguard';
export const WG_GENL_VERSION = 1;
export const WG_KEY_LEN = 32;

export const WG_CMD = { WG_CMD_GET_DEVICE: 0, WG_CMD_SET_DEVICE: 1 } as const;

/** In WGDEVICE_A_FLAGS: the peers given take the place of all there are. */
export const WGDEVICE_F_REPLACE_PEERS = 1;

/** WGDEVICE_A_PEERS is a list: nests of number 0, each of WGPEER. */
export const WGDEVICE = attributeSet('WGDEVICE', {
  WGDEVICE_A_IFINDEX: [1, 'u32'],
  WGDEVICE_A_IFNAME: [2, 'string'],
  WGDEVICE_A_PRIVATE_KEY: [3, 'bytes'],
  WGDEVICE_A_PUBLIC_KEY: [4, 'bytes'],
  WGDEVICE_A_FLAGS: [5, 'u32'],
  WGDEVICE_A_LISTEN_PORT: [6, 'u16'],
  WGDEVICE_A_FWMARK: [7, 'u32'],
  WGDEVICE_A_PEERS: [8 | NLA_F_NESTED, 'bytes'],
});

// In WGPEER_A_FLAGS.
export const WGPEER_F_REMOVE_ME = 1;
export const WGPEER_F_REPLACE_ALLOWEDIPS = 2;
export const WGPEER_F_UPDATE_ONLY = 4;

/** WGPEER_A_ALLOWEDIPS is a list: nests of number 0, each of WGALLOWEDIP. */
export const WGPEER = attributeSet('WGPEER', {
  WGPEER_A_PUBLIC_KEY: [1, 'bytes'],
  WGPEER_A_PRESHARED_KEY: [2, 'bytes'],
  WGPEER_A_FLAGS: [3, 'u32'],
  /** struct sockaddr_in or sockaddr_in6 */
  WGPEER_A_ENDPOINT: [4, 'bytes'],
  /** In seconds; 0 for none. */
  WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL: [5, 'u16'],
  /** struct __kernel_timespec */
  WGPEER_A_LAST_HANDSHAKE_TIME: [6, 'bytes'],
  /** 64 bits, as the next. */
  WGPEER_A_RX_BYTES: [7, 'bytes'],
  WGPEER_A_TX_BYTES: [8, 'bytes'],
  WGPEER_A_ALLOWEDIPS: [9 | NLA_F_NESTED, 'bytes'],
  WGPEER_A_PROTOCOL_VERSION: [10, 'u32'],
});

export const WGALLOWEDIP = attributeSet('WGALLOWEDIP', {
  WGALLOWEDIP_A_FAMILY: [1, 'u16'],
  WGALLOWEDIP_A_IPADDR: [2, 'bytes'],
  WGALLOWEDIP_A_CIDR_MASK: [3, 'u8'],
});

/** An item of a list: number 0. */
export const WG_LIST_ITEM = NLA_F_NESTED;
