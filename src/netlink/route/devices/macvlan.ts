import { encodeBody, encodeNest } from '../../attribute-set.ts';
import type { NetlinkRequest } from '../../message.ts';
import type { Netlink } from '../../netlink.ts';
import {
  IFLA,
  IFLA_MACVLAN,
  MACVLAN_MODE_BRIDGE,
  MACVLAN_MODE_PASSTHRU,
  MACVLAN_MODE_PRIVATE,
  MACVLAN_MODE_VEPA,
} from '../../uapi/if-link.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from '../../uapi/netlink.ts';
import { ifinfomsg, RTM_NEWLINK } from '../../uapi/rtnetlink.ts';
import { linkQuery } from '../link.ts';

const MODES = {
  private: MACVLAN_MODE_PRIVATE,
  vepa: MACVLAN_MODE_VEPA,
  bridge: MACVLAN_MODE_BRIDGE,
  passthru: MACVLAN_MODE_PASSTHRU,
} as const;

/**
 * What macvlans of one link make of each other's frames: nothing (`private`), what a switch outside sends back (`vepa`), they
 * pass them on themselves (`bridge`). `passthru` is the only one of its link, and takes all its frames and its MAC.
 */
export type MacvlanMode = keyof typeof MODES;

/** A link with a MAC of its own that sends and receives through another. */
export interface MacvlanSpec {
  /** At most 15 bytes. */
  readonly name: string;
  /** Index of the link below, in the socket's namespace, whose MTU it takes over and with which it goes. */
  readonly link: number;
  readonly mode: MacvlanMode;
  /** Six bytes. */
  readonly mac: Uint8Array;
  /** A descriptor, of this process, of the namespace it is made in. @default the socket's namespace */
  readonly netnsFd?: number | undefined;
}

/**
 * Makes a macvlan, switched off; never visible in the socket's namespace when another is named. EEXIST when the name is
 * taken; EINVAL when the link below is no Ethernet, a loopback, or taken by a macvlan in mode passthru; EBUSY when it is a
 * port of a bridge; EOPNOTSUPP (`isUnsupported`) on a kernel without the module macvlan.
 */
export function newMacvlan({ name, link, mode, mac, netnsFd }: MacvlanSpec): NetlinkRequest {
  return {
    type: RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    operation: 'RTM_NEWLINK',
    object: `macvlan "${name}" (${mode}) of link ${link}`,
    payload: encodeBody(ifinfomsg, {}, IFLA, {
      IFLA_ADDRESS: mac,
      IFLA_LINK: link,
      IFLA_IFNAME: name,
      IFLA_NET_NS_FD: netnsFd,
      IFLA_LINKINFO: {
        IFLA_INFO_KIND: 'macvlan',
        IFLA_INFO_DATA: encodeNest(IFLA_MACVLAN, { IFLA_MACVLAN_MODE: MODES[mode] }),
      },
    }),
  };
}

/**
 * The mode of a link of kind `macvlan`; undefined when there is no such link, or it is of another kind.
 *
 * @throws KernelError, ERR_NETLINK_DECODE
 */
export function macvlanModeOf(netlink: Netlink, index: number): MacvlanMode | undefined {
  const [answer] = netlink.exchange([], [linkQuery({ index })]).answers;
  if (!(answer instanceof Uint8Array)) return undefined;
  const { IFLA_LINKINFO: info } = IFLA.decode(answer, ifinfomsg.size);
  if (info?.IFLA_INFO_KIND !== 'macvlan' || !info.IFLA_INFO_DATA) return undefined;
  const { IFLA_MACVLAN_MODE: value } = IFLA_MACVLAN.decode(info.IFLA_INFO_DATA);
  return (Object.keys(MODES) as MacvlanMode[]).find((mode) => MODES[mode] === value);
}
