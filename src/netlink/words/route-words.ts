import type { AttributeSet } from '../attribute-set.ts';
import type { MessageWords } from '../debug.ts';
import type { NetlinkMessage } from '../message.ts';
import type { Struct } from '../struct.ts';
import { IFA, ifaddrmsg } from '../uapi/if-addr.ts';
import { IFLA, IFLA_BR, IFLA_VLAN, IFLA_VXLAN } from '../uapi/if-link.ts';
import { NDA, ndmsg } from '../uapi/neighbour.ts';
import { NHA, nhmsg } from '../uapi/nexthop.ts';
import { TCA, tcmsg } from '../uapi/pkt-sched.ts';
import * as rtnetlink from '../uapi/rtnetlink.ts';
import { attributesText, type NestedBytes } from './attribute-words.ts';

const NAMES = new Map<number, string>(
  Object.entries(rtnetlink).flatMap(([name, value]) =>
    /^RTM_(NEW|DEL|GET|SET)/.test(name) && typeof value === 'number' ? [[value, name] as const] : [],
  ),
);

/** What messages are made of, by what their name ends with. */
// biome-ignore lint/suspicious/noExplicitAny: structs and attributes of any declaration
const SHAPES: Readonly<Record<string, readonly [Struct<any>, AttributeSet<any>]>> = {
  LINK: [rtnetlink.ifinfomsg, IFLA],
  ADDR: [ifaddrmsg, IFA],
  ROUTE: [rtnetlink.rtmsg, rtnetlink.RTA],
  NEIGH: [ndmsg, NDA],
  NEXTHOP: [nhmsg, NHA],
  QDISC: [tcmsg, TCA],
  TFILTER: [tcmsg, TCA],
};

/** IFLA_INFO_DATA by the kind beside it. */
// biome-ignore lint/suspicious/noExplicitAny: attributes of any declaration
const INFO_DATA: Readonly<Record<string, AttributeSet<any>>> = { bridge: IFLA_BR, vlan: IFLA_VLAN, vxlan: IFLA_VXLAN };

/**
 * A message of NETLINK_ROUTE: what of its struct is not zero, then its attributes. Undefined for one that this program does not
 * know.
 *
 * @throws ERR_NETLINK_DECODE
 */
export function routeWords({ type, payload }: NetlinkMessage): MessageWords | undefined {
  const name = NAMES.get(type);
  if (name === undefined) return undefined;
  const shape = SHAPES[name.replace(/^RTM_(NEW|DEL|GET|SET)/, '')];
  if (!shape) return { name, lines: [] };
  const [header, attributes] = shape;
  const fields = Object.entries(header.decode(payload)).filter(([, value]) => value !== 0);
  const nested = attributes === IFLA ? infoData(payload) : {};
  const texts = fields.map(([field, value]) => `${field} ${value}`);
  const text = [...texts, attributesText(attributes, payload, header.size, nested)].join(' ').trim();
  return { name, lines: text === '' ? [] : [text] };
}

function infoData(payload: Uint8Array): NestedBytes {
  const kind = IFLA.decode(payload, rtnetlink.ifinfomsg.size).IFLA_LINKINFO?.IFLA_INFO_KIND;
  const set = kind === undefined ? undefined : INFO_DATA[kind];
  return set ? { IFLA_INFO_DATA: (value) => attributesText(set, value) } : {};
}
