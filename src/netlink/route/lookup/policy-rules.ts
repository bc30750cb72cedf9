import { type Cidr, type IpFamily, ipFromBytes, readU16, readU32 } from '../../../core/index.ts';
import { familyNumber } from '../../address-family.ts';
import { encodeBody } from '../../attribute-set.ts';
import type { Netlink } from '../../netlink.ts';
import { FIB_RULE_INVERT, FRA, fib_rule_hdr, RTM_GETRULE } from '../../uapi/fib-rules.ts';
import { RT_TABLE_LOCAL } from '../../uapi/rtnetlink.ts';

type Ports = readonly [first: number, last: number];

/** What a policy rule asks of packets that a question about routes seldom knows (`ip rule`). */
export interface PolicyRule {
  /** Its preference: the kernel goes from 0 upwards. */
  readonly priority: number;
  /** The source addresses that it asks for; undefined: it asks for none. */
  readonly source?: Cidr;
  /** The source ports that it asks for; undefined: it asks for none. */
  readonly sourcePorts: Ports | undefined;
  /** The destination ports that it asks for; undefined: it asks for none. */
  readonly destinationPorts: Ports | undefined;
  /** The first user that it asks for; undefined: it asks for none. */
  readonly user: number | undefined;
  /** The protocol that it asks for (IPPROTO_*); undefined: it asks for none. */
  readonly protocol?: number;
  /** Whether it asks for the class of traffic (`tos`, `dscp`). */
  readonly byClass: boolean;
  /** It is for packets that do not have what it asks for (`not`). @default false */
  readonly isInverted?: boolean;
  /** It has the table of own addresses looked up. @default false */
  readonly isOfLocal?: boolean;
}

/**
 * Lists the policy rules of a family, in the kernel's order.
 *
 * @throws KernelError, ERR_NETLINK_DECODE
 */
export function listPolicyRules(netlink: Netlink, family: IpFamily): PolicyRule[] {
  const request = {
    type: RTM_GETRULE,
    flags: 0,
    operation: 'RTM_GETRULE',
    object: `policy rules of ${family}`,
    payload: encodeBody(fib_rule_hdr, { family: familyNumber(family) }, FRA, {}),
  };
  return netlink.dump(request).map(decodePolicyRule);
}

/** Decodes the payload of an RTM_NEWRULE. Throws ERR_NETLINK_DECODE. */
export function decodePolicyRule(payload: Uint8Array): PolicyRule {
  const { tos, src_len, table, flags } = fib_rule_hdr.decode(payload);
  const rule = FRA.decode(payload, fib_rule_hdr.size);
  return {
    priority: rule.FRA_PRIORITY ?? 0,
    ...(rule.FRA_SRC && { source: { address: ipFromBytes(rule.FRA_SRC), prefixLength: src_len } }),
    sourcePorts: portsOf(rule.FRA_SPORT_RANGE),
    destinationPorts: portsOf(rule.FRA_DPORT_RANGE),
    user: rule.FRA_UID_RANGE && readU32(rule.FRA_UID_RANGE, 0),
    ...(rule.FRA_IP_PROTO !== undefined && { protocol: rule.FRA_IP_PROTO }),
    byClass: tos !== 0 || rule.FRA_DSCP !== undefined,
    ...((flags & FIB_RULE_INVERT) !== 0 && { isInverted: true }),
    ...(table === RT_TABLE_LOCAL && { isOfLocal: true }),
  };
}

function portsOf(range: Uint8Array | undefined): Ports | undefined {
  return range && [readU16(range, 0), readU16(range, 2)];
}
