import { type AttributeValues, encodeBody } from '../attribute-set.ts';
import type { NetlinkRequest } from '../message.ts';
import { genlmsghdr } from '../uapi/genetlink.ts';
import { NET_DM_ALERT_MODE_SUMMARY, NET_DM_ATTRIBUTES, NET_DM_CMD, NET_DM_GENL_VERSION } from '../uapi/net-dropmon.ts';

/** How the drop monitor tells what it sees: one setting for the machine, which can be changed only while it is off. */
export interface DropConfiguration {
  /** NET_DM_ALERT_MODE_* */
  readonly mode: number;
  /** Bytes of a packet; 0: all. */
  readonly truncateTo: number;
  /** Packets that wait to be told, for each CPU. */
  readonly queueLength: number;
}

/** That of a kernel nobody has changed (net_dm_queue_len, net/core/drop_monitor.c). */
export const DEFAULT_CONFIGURATION: DropConfiguration = {
  mode: NET_DM_ALERT_MODE_SUMMARY,
  truncateTo: 0,
  queueLength: 1000,
};

/** A message of the family NET_DM. EBUSY for a configuration while it is on, EAGAIN for a start then. */
export function dropRequest(
  family: number,
  operation: keyof typeof NET_DM_CMD,
  attributes: AttributeValues<(typeof NET_DM_ATTRIBUTES)['declarations']> = {},
): NetlinkRequest {
  const header = { cmd: NET_DM_CMD[operation], version: NET_DM_GENL_VERSION };
  const payload = encodeBody(genlmsghdr, header, NET_DM_ATTRIBUTES, attributes);
  return { type: family, flags: 0, operation, object: 'drop monitor', payload };
}

/** The request to take this configuration. Refused (EBUSY) while the kernel tells of drops. */
export function configure(family: number, { mode, truncateTo, queueLength }: DropConfiguration): NetlinkRequest {
  return dropRequest(family, 'NET_DM_CMD_CONFIG', {
    NET_DM_ATTR_ALERT_MODE: mode,
    NET_DM_ATTR_TRUNC_LEN: truncateTo,
    NET_DM_ATTR_QUEUE_LEN: queueLength,
  });
}

/** Decodes the answer to NET_DM_CMD_CONFIG_GET. Throws ERR_NETLINK_DECODE. */
export function decodeConfiguration(payload: Uint8Array): DropConfiguration {
  const told = NET_DM_ATTRIBUTES.decode(payload, genlmsghdr.size);
  return {
    mode: told.NET_DM_ATTR_ALERT_MODE ?? DEFAULT_CONFIGURATION.mode,
    truncateTo: told.NET_DM_ATTR_TRUNC_LEN ?? DEFAULT_CONFIGURATION.truncateTo,
    queueLength: told.NET_DM_ATTR_QUEUE_LEN ?? DEFAULT_CONFIGURATION.queueLength,
  };
}
