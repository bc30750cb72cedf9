import { readAttributes } from '../attribute.ts';
import type { AttributeSet } from '../attribute-set.ts';
import type { MessageWords } from '../debug.ts';
import type { NetlinkMessage } from '../message.ts';
import { CTRL_ATTRIBUTES, GENL_ID_CTRL, genlmsghdr } from '../uapi/genetlink.ts';
import { IPVS_CMD, IPVS_CMD_ATTRIBUTES, IPVS_GENL_NAME, IPVS_INFO } from '../uapi/ip-vs.ts';
import { WG_CMD, WG_GENL_NAME, WGALLOWEDIP, WGDEVICE, WGPEER } from '../uapi/wireguard.ts';
import { attributesText, byNumber, type NestedBytes } from './attribute-words.ts';

const IPVS_COMMANDS = byNumber(IPVS_CMD);
const WG_COMMANDS = byNumber(WG_CMD);

/** Words for generic netlink. What number a family has is learned from the controller's answers. */
export class GenericWords {
  readonly #families = new Map<number, string>();

  /**
   * A message of the controller, of IPVS or of WireGuard; undefined for other families.
   *
   * @throws ERR_NETLINK_DECODE
   */
  describe({ type, payload }: NetlinkMessage): MessageWords | undefined {
    if (type === GENL_ID_CTRL) return this.#controller(payload);
    const family = this.#families.get(type);
    if (family === IPVS_GENL_NAME) return ipvsWords(payload);
    return family === WG_GENL_NAME ? wireguardWords(payload) : undefined;
  }

  #controller(payload: Uint8Array): MessageWords {
    const { cmd } = genlmsghdr.decode(payload);
    const { CTRL_ATTR_FAMILY_ID: id, CTRL_ATTR_FAMILY_NAME: name } = CTRL_ATTRIBUTES.decode(payload, genlmsghdr.size);
    if (id !== undefined && name !== undefined) this.#families.set(id, name);
    const named = name === undefined ? '' : ` CTRL_ATTR_FAMILY_NAME "${name}"`;
    const numbered = id === undefined ? '' : ` CTRL_ATTR_FAMILY_ID ${id}`;
    const text = `${named}${numbered}`.trim();
    return { name: CONTROLLER_COMMANDS[cmd] ?? `CTRL command ${cmd}`, lines: text === '' ? [] : [text] };
  }
}

function ipvsWords(payload: Uint8Array): MessageWords {
  const { cmd } = genlmsghdr.decode(payload);
  const name = IPVS_COMMANDS.get(cmd);
  const attributes = name === 'IPVS_CMD_GET_INFO' ? IPVS_INFO : IPVS_CMD_ATTRIBUTES;
  // An answer to IPVS_CMD_GET_INFO is IPVS_CMD_SET_INFO.
  if (name === undefined) return { name: `IPVS command ${cmd}`, lines: [] };
  const text = attributesText(attributes, payload, genlmsghdr.size);
  return { name, lines: text === '' ? [] : [text] };
}

function wireguardWords(payload: Uint8Array): MessageWords {
  const { cmd } = genlmsghdr.decode(payload);
  const name = WG_COMMANDS.get(cmd) ?? `wireguard command ${cmd}`;
  const text = attributesText(WGDEVICE, payload, genlmsghdr.size, WIREGUARD_LISTS);
  return { name, lines: text === '' ? [] : [text] };
}

const WIREGUARD_LISTS: NestedBytes = {
  WGDEVICE_A_PEERS: (list) => listText(list, WGPEER, { WGPEER_A_ALLOWEDIPS: (ips) => listText(ips, WGALLOWEDIP) }),
};

// biome-ignore lint/suspicious/noExplicitAny: attributes of any declaration
function listText(list: Uint8Array, set: AttributeSet<any>, nested?: NestedBytes): string {
  const items = [...readAttributes(list, 0, set.name)];
  return items.map(({ value }) => `{ ${attributesText(set, value, 0, nested)} }`).join(' ');
}

/** enum ctrl_cmd */
const CONTROLLER_COMMANDS: Readonly<Record<number, string>> = { 1: 'CTRL_CMD_NEWFAMILY', 3: 'CTRL_CMD_GETFAMILY' };
