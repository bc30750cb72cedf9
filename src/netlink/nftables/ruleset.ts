import type {
  ChainRef,
  CommitOptions,
  CommitReport,
  NftChain,
  NftChange,
  NftCounter,
  NftElement,
  NftFamily,
  NftRule,
  NftSet,
  NftTable,
  SetRef,
  TableRef,
} from './object/model.ts';

/** Changes the ruleset of a network namespace, one transaction at a time. */
export interface NftWriter {
  /**
   * Makes all changes or none.
   *
   * @throws NftCommitError ERR_NETLINK_ACK naming the change the kernel refused; `isStaleGeneration` when the ruleset
   *   is not of the expected generation any more; ERR_NETLINK_SOCKET
   */
  commit(changes: readonly NftChange[], options?: CommitOptions): CommitReport;
  /** As `commit`, with the event loop running while the kernel works. One at a time: commits queue behind each other. */
  commitAsync(changes: readonly NftChange[], options?: CommitOptions): Promise<CommitReport>;
  /**
   * Runs a program of ours that makes so many large transactions, which nobody of this process listens to.
   *
   * @param run rejects when the program fails: what it has made by then is taken for somebody else's
   */
  byProgram(transactions: number, run: () => Promise<void>): Promise<void>;
}

/**
 * Reads the ruleset of a network namespace. Every listing is of one generation; it is read again when the ruleset changed
 * meanwhile, and fails with ERR_NETLINK_DUMP_INTERRUPTED when it keeps changing. What does not exist is listed empty;
 * `listElements` of a set that does not exist throws a KernelError (`isNotFound`).
 */
export interface NftReader {
  /** The ruleset's generation: a number that grows with every transaction, whoever makes it. */
  generation(): number;
  listTables(family?: NftFamily): NftTable[];
  /** Chains, without their rules, of a family or of one table. */
  listChains(of?: TableRef | NftFamily): NftChain[];
  /** The chains that are hooked in, of all families: among ten thousand others those are a few. */
  listBaseChains(): NftChain[];
  /** One chain, without its rules; undefined when there is none. One request, however many chains its table has. */
  getChain(chain: ChainRef): NftChain | undefined;
  /** Rules in their order, of one table or one chain. */
  listRules(of: TableRef | ChainRef): NftRule[];
  /** Sets and maps, without their elements, of a family or of one table. */
  listSets(of?: TableRef | NftFamily): NftSet[];
  /** These three as those above, letting the event loop run between the parts of a long listing. */
  listChainsAsync(of: TableRef): Promise<NftChain[]>;
  listRulesAsync(of: TableRef): Promise<NftRule[]>;
  listSetsAsync(of: TableRef): Promise<NftSet[]>;
  listElements(set: SetRef): NftElement[];
  /** As `listElements`, letting the event loop run between the parts of a long listing. */
  listElementsAsync(set: SetRef): Promise<NftElement[]>;
  /**
   * The element with this key; undefined when there is none. In interval sets, the element the key falls into; nowhere the
   * catch-all element, which is asked for by that name.
   */
  getElement(set: SetRef, key: Uint8Array | 'catch-all'): NftElement | undefined;
  listCounters(of: TableRef): NftCounter[];
}

/** All of a namespace's nf_tables: the kernel's, or a fake of it. */
export interface NftRuleset extends NftWriter, NftReader {
  close(): void;
}
