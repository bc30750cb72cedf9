import { findAttribute, valueEnd, valueStart } from '../../attribute.ts';
import type { NetlinkMessage } from '../../message.ts';
import * as uapi from '../../uapi/nf-tables.ts';
import { nfgenmsg, nfnlType } from '../../uapi/nfnetlink.ts';
import { decodeGeneration } from '../object/object-decode.ts';
import type { CommitChange, NftCommit } from './commit.ts';

/** Kinds of change remembered of a transaction: a reload of a firewall touches hundreds. */
const KINDS_OF_COMMIT = 16;

type Kind = Pick<CommitChange, 'verb' | 'object'>;

/** By message: what it tells, and the number of the attribute that says where. The table's name is attribute 1 of all. */
const MESSAGES = new Map<number, readonly [Kind['verb'], Kind['object'], name: number | undefined]>([
  [uapi.NFT_MSG_NEWTABLE, ['added', 'table', undefined]],
  [uapi.NFT_MSG_DELTABLE, ['removed', 'table', undefined]],
  [uapi.NFT_MSG_NEWCHAIN, ['added', 'chain', 3]],
  [uapi.NFT_MSG_DELCHAIN, ['removed', 'chain', 3]],
  [uapi.NFT_MSG_NEWRULE, ['added', 'rule', 2]],
  [uapi.NFT_MSG_DELRULE, ['removed', 'rule', 2]],
  [uapi.NFT_MSG_NEWSET, ['added', 'set', 2]],
  [uapi.NFT_MSG_DELSET, ['removed', 'set', 2]],
  [uapi.NFT_MSG_NEWSETELEM, ['added', 'elements', 2]],
  [uapi.NFT_MSG_DELSETELEM, ['removed', 'elements', 2]],
  [uapi.NFT_MSG_NEWOBJ, ['added', 'object', 2]],
  [uapi.NFT_MSG_DELOBJ, ['removed', 'object', 2]],
  [uapi.NFT_MSG_NEWFLOWTABLE, ['added', 'flowtable', 2]],
  [uapi.NFT_MSG_DELFLOWTABLE, ['removed', 'flowtable', 2]],
]);

/** NFPROTO_* */
const FAMILIES: Readonly<Record<number, string>> = {
  1: 'inet',
  2: 'ip',
  3: 'arp',
  5: 'netdev',
  7: 'bridge',
  10: 'ip6',
};

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Puts the kernel's messages about nf_tables together to transactions: it tells the objects, then the generation with who made
 * it. Of an object only its names are read, so that a reload of 10,000 rules costs a few reads each.
 */
export class CommitReader {
  readonly #changes = new Map<string, Writable<CommitChange>>();
  #total = 0;

  /**
   * Takes in one message.
   *
   * @returns the transaction that it completes
   * @throws ERR_NETLINK_DECODE
   */
  take({ type, payload }: Pick<NetlinkMessage, 'type' | 'payload'>): NftCommit | undefined {
    if (type === nfnlType(uapi.NFNL_SUBSYS_NFTABLES, uapi.NFT_MSG_NEWGEN)) {
      const commit = { ...decodeGeneration(payload), changes: [...this.#changes.values()], total: this.#total };
      this.forget();
      return commit;
    }
    const known = type >> 8 === uapi.NFNL_SUBSYS_NFTABLES ? MESSAGES.get(type & 0xff) : undefined;
    if (!known) return undefined;
    this.#total++;
    const [verb, object, nameAt] = known;
    const family = FAMILIES[payload[0] ?? 0] ?? String(payload[0]);
    const table = textAt(payload, 1) ?? '';
    const name = nameAt === undefined ? undefined : textAt(payload, nameAt);
    const key = `${verb} ${object} ${family} ${table} ${name ?? ''}`;
    const alike = this.#changes.get(key);
    if (alike) alike.count++;
    else if (this.#changes.size < KINDS_OF_COMMIT)
      this.#changes.set(key, { verb, object, family, table, name, count: 1 });
    return undefined;
  }

  /** What was told of a transaction whose end was lost is of no use. */
  forget(): void {
    this.#changes.clear();
    this.#total = 0;
  }
}

/** A string attribute of the body; undefined when it is not there. */
function textAt(payload: Uint8Array, type: number): string | undefined {
  const at = findAttribute(payload, nfgenmsg.size, payload.length, type, 'a message of nf_tables');
  if (at < 0) return undefined;
  const bytes = payload.subarray(valueStart(at), valueEnd(payload, at));
  const end = bytes.indexOf(0);
  return Buffer.from(end < 0 ? bytes : bytes.subarray(0, end)).toString('utf8');
}
