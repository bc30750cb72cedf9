// <linux/genetlink.h>: families that are known by name and get their message type from the kernel.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

/**
 * struct genlmsghdr {
 *   __u8  cmd;       // of the family
 *   __u8  version;   // of the family
 *   __u16 reserved;
 * };
 */
export const genlmsghdr = struct('genlmsghdr', 4, { cmd: ['u8', 0], version: ['u8', 1] });

/** The message type of the controller, which knows the others. */
export const GENL_ID_CTRL = 0x10;

export const CTRL_CMD_GETFAMILY = 3;
export const CTRL_VERSION = 2;

export const CTRL_ATTRIBUTES = attributeSet('CTRL', {
  CTRL_ATTR_FAMILY_ID: [1, 'u16'],
  CTRL_ATTR_FAMILY_NAME: [2, 'string'],
});
