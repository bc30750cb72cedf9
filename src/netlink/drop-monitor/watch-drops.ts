import { resolveFamily } from '../generic-family.ts';
import { Netlink } from '../netlink.ts';
import { openSocket } from '../socket.ts';
import { NET_DM_GENL_NAME, NET_DM_GRP_ALERT } from '../uapi/net-dropmon.ts';
import { NETLINK_GENERIC } from '../uapi/netlink.ts';
import { type SocketWatch, watchSocket } from '../watch/index.ts';
import { type DroppedPacket, decodeDrops } from './dropped-packet.ts';
import { switchOff, switchOn } from './switch.ts';

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
        if (before) switchOff(netlink, family, before);
        netlink.close();
      },
    };
  } catch (error) {
    watch?.close();
    netlink.close();
    throw error;
  }
}
