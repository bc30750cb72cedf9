import { KernelError } from '../../core/index.ts';
import type { Netlink } from '../netlink.ts';
import { NET_DM_ALERT_MODE_PACKET } from '../uapi/net-dropmon.ts';
import {
  configure,
  DEFAULT_CONFIGURATION,
  type DropConfiguration,
  decodeConfiguration,
  dropRequest,
} from './configuration.ts';

/**
 * As much of a packet as the headers of a link, of IPv6 and of TCP take. Nobody else asks for just so much: what is on with it was
 * left by a program of ours that was killed, for the kernel switches nothing off then.
 */
export const OURS: DropConfiguration = { mode: NET_DM_ALERT_MODE_PACKET, truncateTo: 119, queueLength: 211 };

/**
 * Has the drop monitor tell packets.
 *
 * @returns the configuration to go back to; undefined: somebody else has it on, in a way that serves
 * @throws KernelError EBUSY when somebody has it count by places alone; ERR_NETLINK_SOCKET, ERR_NETLINK_DECODE
 */
export function switchOn(netlink: Netlink, family: number): DropConfiguration | undefined {
  const before = decodeConfiguration(netlink.query(dropRequest(family, 'NET_DM_CMD_CONFIG_GET')));
  try {
    netlink.execute(configure(family, OURS));
  } catch (error) {
    // Whether it is on no message tells.
    if (!(error instanceof KernelError && error.errnoName === 'EBUSY')) throw error;
    const isOurs = (Object.keys(OURS) as (keyof DropConfiguration)[]).every((key) => before[key] === OURS[key]);
    if (isOurs) return DEFAULT_CONFIGURATION;
    if (before.mode === NET_DM_ALERT_MODE_PACKET) return undefined;
    throw error;
  }
  netlink.execute(dropRequest(family, 'NET_DM_CMD_START'));
  return before;
}

/** Switches it off, and back to a configuration. Throws KernelError, ERR_NETLINK_SOCKET. */
export function switchOff(netlink: Netlink, family: number, before: DropConfiguration): void {
  // Only what is off can be configured.
  netlink.execute(dropRequest(family, 'NET_DM_CMD_STOP'));
  netlink.execute(configure(family, before));
}
