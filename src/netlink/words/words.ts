import { describeErrno } from '../../core/index.ts';
import { decodeAcknowledgement } from '../answers.ts';
import type { MessageDescriber, MessageWords } from '../debug.ts';
import type { NetlinkMessage } from '../message.ts';
import { NftMessageReader } from '../nftables/text/index.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE, NLMSG_ERROR } from '../uapi/netlink.ts';
import { GenericWords } from './generic-words.ts';
import { netfilterWords } from './netfilter-words.ts';
import { routeWords } from './route-words.ts';

/**
 * Says what netlink messages are about: a change of nf_tables as `nft` text, other messages by the names of their attributes. One
 * for each process: it remembers the sets of nf_tables and the families of generic netlink that went by.
 */
export class NetlinkWords implements MessageDescriber {
  readonly #nftables = new NftMessageReader();
  readonly #generic = new GenericWords();

  describe(protocol: number, isRequest: boolean, message: NetlinkMessage): MessageWords | undefined {
    if (message.type === NLMSG_ERROR) return { name: 'NLMSG_ERROR', lines: acknowledgementWords(message) };
    if (protocol === NETLINK_NETFILTER) {
      return this.#nftables.read(isRequest, message) ?? netfilterWords(message);
    }
    if (protocol === NETLINK_ROUTE) return routeWords(message);
    return protocol === NETLINK_GENERIC ? this.#generic.describe(message) : undefined;
  }
}

function acknowledgementWords(message: NetlinkMessage): string[] {
  const { errno, extAck } = decodeAcknowledgement(message);
  if (errno === 0) return [];
  return [`refused: ${describeErrno(errno).name}${extAck === undefined ? '' : ` (${extAck})`}`];
}
