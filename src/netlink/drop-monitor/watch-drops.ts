import { KernelError } from '../../core/index.ts';
import { resolveFamily } from '../generic-family.ts';
import { Netlink } from '../netlink.ts';
import { openSocket } from '../socket.ts';
import { NET_DM_ALERT_MODE_PACKET, NET_DM_GENL_NAME, NET_DM_GRP_ALERT } from '../uapi/net-dropmon.ts';
import { NETLINK_GENERIC } from '../uapi/netlink.ts';
import { type SocketWatch, watchSocket } from '../watch/index.ts';
import {
  configure,
  DEFAULT_CONFIGURATION,
  type DropConfiguration,
  decodeConfiguration,
  dropRequest,
} from './configuration.ts';
import { type DroppedPacket, decodeDrops } from './dropped-packet.ts';

/**
 * As much of a packet as the headers of a link, of IPv6 and of TCP take. Nobody else asks for just so much: what is on with it was
 * left by a program of ours that was killed, for the kernel switches nothing off then.
 */
const OURS: DropConfiguration = { mode: NET_DM_ALERT_MODE_PACKET, truncateTo: 119, queueLength: 211 };

/**
 * Tells which packets the kernel drops, of all namespaces of the machine, until `close`, which leaves the kernel's drop monitor as
 * it was: if it was on and tells packets, it is only listened to.
 *
 * @param listener 'lost' when more were dropped than were read
 * @throws KernelError ENOENT (`isNotFound`) without the module drop_monitor, or in a network namespace that is not the machine's
 *   first; EBUSY when somebody has it count by places alone; ERR_NETLINK_SOCKET without CAP_SYS_ADMIN; ERR_NETLINK_DECODE
 */
export function watchDrops(listener: (drop: DroppedPacket | 'lost') => void): SocketWatch {
  const netlink = Netlink.open(NETLINK_GENERIC);
  let watch: SocketWatch | undefined;
  try {
    const family = resolveFamily(netlink, NET_DM_GENL_NAME);
    const socket = openSocket(NETLINK_GENERIC, { groups: [NET_DM_GRP_ALERT] });
    watch = watchSocket(socket, (datagram) => {
      if (datagram === 'lost') listener('lost');
      else for (const drop of decodeDrops(datagram, family)) listener(drop);
    });
    const before = switchOn(netlink, family);
    const { catchUp, close } = watch;
    return {
      catchUp,
      close() {
        close();
        if (before) netlink.execute(dropRequest(family, 'NET_DM_CMD_STOP'));
        if (before) netlink.execute(configure(family, before));
        netlink.close();
      },
    };
  } catch (error) {
    watch?.close();
    netlink.close();
    throw error;
  }
}

/** @returns the configuration to go back to; undefined: somebody else has it on, in a way that serves */
function switchOn(netlink: Netlink, family: number): DropConfiguration | undefined {
  const before = decodeConfiguration(netlink.query(dropRequest(family, 'NET_DM_CMD_CONFIG_GET')));
  try {
    netlink.execute(configure(family, OURS));
  } catch (error) {
    if (!(error instanceof KernelError && error.errnoName === 'EBUSY')) throw error;
    const isOurs = (Object.keys(OURS) as (keyof DropConfiguration)[]).every((key) => before[key] === OURS[key]);
    if (isOurs) return DEFAULT_CONFIGURATION;
    if (before.mode === NET_DM_ALERT_MODE_PACKET) return undefined;
    throw error;
  }
  netlink.execute(dropRequest(family, 'NET_DM_CMD_START'));
  return before;
}
