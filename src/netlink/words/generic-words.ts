import type { MessageWords } from '../debug.ts';
import type { NetlinkMessage } from '../message.ts';
import { CTRL_ATTRIBUTES, GENL_ID_CTRL, genlmsghdr } from '../uapi/genetlink.ts';
import { IPVS_CMD, IPVS_CMD_ATTRIBUTES, IPVS_GENL_NAME, IPVS_INFO } from '../uapi/ip-vs.ts';
import { attributesText } from './attribute-words.ts';

const IPVS_COMMANDS = new Map<number, string>(Object.entries(IPVS_CMD).map(([name, number]) => [number, name]));

/** Words for generic netlink. What number a family has is learned from the controller's answers. */
export class GenericWords {
  readonly #families = new Map<number, string>();

  /**
   * A message of the controller or of IPVS; undefined for other families.
   *
   * @throws ERR_NETLINK_DECODE
   */
  describe({ type, payload }: NetlinkMessage): MessageWords | undefined {
    if (type === GENL_ID_CTRL) return this.#controller(payload);
    if (this.#families.get(type) !== IPVS_GENL_NAME) return undefined;
    const { cmd } = genlmsghdr.decode(payload);
    const name = IPVS_COMMANDS.get(cmd);
    const attributes = name === 'IPVS_CMD_GET_INFO' ? IPVS_INFO : IPVS_CMD_ATTRIBUTES;
    // An answer to IPVS_CMD_GET_INFO is IPVS_CMD_SET_INFO.
    if (name === undefined) return { name: `IPVS command ${cmd}`, lines: [] };
    const text = attributesText(attributes, payload, genlmsghdr.size);
    return { name, lines: text === '' ? [] : [text] };
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

/** enum ctrl_cmd */
const CONTROLLER_COMMANDS: Readonly<Record<number, string>> = { 1: 'CTRL_CMD_NEWFAMILY', 3: 'CTRL_CMD_GETFAMILY' };
