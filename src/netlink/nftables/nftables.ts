import { setTimeout } from 'node:timers/promises';
import { ifPresent, isNotFound, NodeplaneError } from '../../core/index.ts';
import type { PayloadFilter } from '../answers.ts';
import type { NetlinkRequest } from '../message.ts';
import { Netlink } from '../netlink.ts';
import { openSocket } from '../socket.ts';
import type { BatchTransport } from '../transport.ts';
import { NETLINK_NETFILTER } from '../uapi/netlink.ts';
import { openTogether } from '../with-netlink.ts';
import { Committer } from './committer.ts';
import { DumpQueue } from './dump-queue.ts';
import { hasDuplicates } from './duplicates.ts';
import { countOwnCommit, rulesetHere, unheard } from './listening/absence.ts';
import { decodeLinkChain, type LinkChain } from './object/link-chain.ts';
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
import * as decode from './object/object-decode.ts';
import * as requests from './requests.ts';
import type { NftRuleset } from './ruleset.ts';

const ATTEMPTS = 6;
const PAUSE_MS = 20;

/** nf_tables of one network namespace, over netlink. */
export class Nftables implements NftRuleset {
  readonly #now: Committer;
  /** Commits and listings that wait have sockets of their own, so that others may go on meanwhile. */
  readonly #later: Committer;
  readonly #reads: Netlink;
  readonly #longReads: DumpQueue;
  readonly #ruleset = rulesetHere();
  #lastCommit: Promise<unknown> = Promise.resolve();
  #baseChains: OfGeneration | undefined;

  /** @param open opens a socket of NETLINK_NETFILTER, four times; `Nftables.open` does it in the namespace of the thread */
  constructor(open: () => BatchTransport) {
    const { now, later, reads, longReads } = openTogether((keep) => ({
      now: keep(new Committer(open())),
      later: keep(new Committer(open())),
      reads: keep(new Netlink(open())),
      longReads: keep(new DumpQueue(new Netlink(open()))),
    }));
    this.#now = now;
    this.#later = later;
    this.#reads = reads;
    this.#longReads = longReads;
  }

  /**
   * Opens nf_tables in the namespace of the calling thread (`inNetns` for another); it stays bound to it.
   *
   * @throws ERR_NETLINK_SOCKET when the kernel has no nfnetlink
   */
  static open(): Nftables {
    return new Nftables(() => openSocket(NETLINK_NETFILTER));
  }

  commit(changes: readonly NftChange[], options?: CommitOptions): CommitReport {
    return this.#now.commit(changes, options);
  }

  commitAsync(changes: readonly NftChange[], options?: CommitOptions): Promise<CommitReport> {
    const commit = () => this.#unheard(() => this.#later.commitAsync(changes, options));
    const report = this.#lastCommit.then(commit, commit);
    this.#lastCommit = report.catch(() => undefined);
    return report;
  }

  byProgram(transactions: number, run: () => Promise<void>): Promise<void> {
    return this.#unheard(async () => {
      await run();
      for (let i = 0; i < transactions; i++) countOwnCommit();
    });
  }

  generation(): number {
    return decode.decodeGeneration(this.#reads.query(requests.generationRequest())).generation;
  }

  listTables(family?: NftFamily): NftTable[] {
    return this.#list(requests.tableListing(family), decode.decodeTable);
  }

  listChains(of?: TableRef | NftFamily): NftChain[] {
    const chains = this.#list(requests.chainListing(of), decode.decodeChain);
    return typeof of === 'object' ? chains.filter((chain) => chain.table === of.name) : chains;
  }

  listBaseChains(): NftChain[] {
    return decodeAll(this.#readBaseChains(), decode.decodeChain);
  }

  /** Those that see packets beside the hooks of the host: on links, in bridges, and of ARP. */
  listLinkChains(): LinkChain[] {
    return this.#readBaseChains().flatMap((payload) => decodeLinkChain(payload) ?? []);
  }

  /** Whether there are tables of flows whose packets pass rules by (`flow add`), in whatever family. */
  get hasFlowTables(): boolean {
    return this.#reads.dump(requests.flowTableListing()).length > 0;
  }

  getChain(chain: ChainRef): NftChain | undefined {
    const payload = ifPresent(() => this.#reads.query(requests.chainRequest(chain)));
    return payload && decode.decodeChain(payload, chain.family);
  }

  listRules(of: TableRef | ChainRef): NftRule[] {
    return this.#list(requests.ruleListing(of), decode.decodeRule);
  }

  listSets(of?: TableRef | NftFamily): NftSet[] {
    return this.#list(requests.setListing(of), decode.decodeSet);
  }

  listChainsAsync(of: TableRef): Promise<NftChain[]> {
    return this.#listAsync(requests.chainListing(of), (payload, family) => {
      const chain = decode.decodeChain(payload, family);
      return chain?.table === of.name ? chain : undefined;
    });
  }

  listRulesAsync(of: TableRef): Promise<NftRule[]> {
    return this.#listAsync(requests.ruleListing(of), decode.decodeRule);
  }

  listSetsAsync(of: TableRef): Promise<NftSet[]> {
    return this.#listAsync(requests.setListing(of), decode.decodeSet);
  }

  listElements(set: SetRef): NftElement[] {
    const request = requests.elementListing(set);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const elements = this.#list(request, decode.decodeElementList).flatMap((part) => part.elements);
      if (!hasDuplicates(elements)) return elements;
    }
    throw keptChanging(request);
  }

  async listElementsAsync(set: SetRef): Promise<NftElement[]> {
    const request = requests.elementListing(set);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const before = this.generation();
      const elements = await this.#longReads.listElements(request);
      if (this.generation() === before && !hasDuplicates(elements)) return elements;
      // A table that moves its elements is done in no time.
      await setTimeout(PAUSE_MS * attempt);
    }
    throw keptChanging(request);
  }

  getElement(set: SetRef, key: Uint8Array | 'catch-all'): NftElement | undefined {
    const payload = ifPresent(() => this.#reads.query(requests.elementRequest(set, key)));
    return payload && decode.decodeElementList(payload, set.family).elements[0];
  }

  listCounters(of: TableRef): NftCounter[] {
    return this.#list(requests.counterListing(of), decode.decodeCounter);
  }

  /** Gives the sockets back. A commit or listing that is under way ends with an error. */
  close(): void {
    this.#now.close();
    this.#later.close();
    this.#reads.close();
    this.#longReads.close();
  }

  /** Of a table that is not there, the kernel lists nothing or says ENOENT, depending on what is listed. */
  #dump(request: NetlinkRequest, isWanted?: PayloadFilter): Uint8Array[] {
    try {
      return this.#reads.dump(request, isWanted);
    } catch (error) {
      if (isNotFound(error) && request.operation !== 'NFT_MSG_GETSETELEM') return [];
      throw error;
    }
  }

  /** As `#list`, with the event loop running in between. */
  async #listAsync<T>(
    request: NetlinkRequest,
    decodeObject: (payload: Uint8Array, family: NftFamily) => T | undefined,
  ): Promise<T[]> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const before = this.generation();
      try {
        const objects = await this.#longReads.list(request, (payload) => {
          const family = decode.decodeFamily(payload);
          return family && decodeObject(payload, family);
        });
        if (this.generation() === before) return objects;
      } catch (error) {
        if (isNotFound(error)) return [];
        throw error;
      }
      await setTimeout(PAUSE_MS * attempt);
    }
    throw keptChanging(request);
  }

  #unheard<T>(commit: () => Promise<T>): Promise<T> {
    return unheard(this.#ruleset, () => this.generation(), commit);
  }

  /** All objects of one generation; those the model has no place for are left out. */
  #list<T>(request: NetlinkRequest, decodeObject: (payload: Uint8Array, family: NftFamily) => T | undefined): T[] {
    return decodeAll(this.#read(request).payloads, decodeObject);
  }

  /** Of tens of thousands of chains those that are hooked in, which are the same until something is committed. */
  #readBaseChains(): readonly Uint8Array[] {
    if (this.#baseChains?.generation !== this.generation()) {
      this.#baseChains = this.#read(requests.chainListing(undefined), decode.isBaseChain);
    }
    return this.#baseChains.payloads;
  }

  /** All messages of one generation. */
  #read(request: NetlinkRequest, isWanted?: PayloadFilter): OfGeneration {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const generation = this.generation();
      const payloads = this.#dump(request, isWanted);
      if (this.generation() === generation) return { generation, payloads };
    }
    throw keptChanging(request);
  }
}

interface OfGeneration {
  readonly generation: number;
  readonly payloads: readonly Uint8Array[];
}

function decodeAll<T>(
  payloads: readonly Uint8Array[],
  decodeObject: (payload: Uint8Array, family: NftFamily) => T | undefined,
): T[] {
  return payloads.flatMap((payload) => {
    const family = decode.decodeFamily(payload);
    const object = family && decodeObject(payload, family);
    return object === undefined ? [] : [object];
  });
}

function keptChanging({ operation, object }: NetlinkRequest): NodeplaneError {
  return new NodeplaneError(
    'ERR_NETLINK_DUMP_INTERRUPTED',
    `${operation} ${object}: it changed during each of ${ATTEMPTS} readings; try again`,
    { facts: { operation, object } },
  );
}
