import {
  addressBits,
  type Cidr,
  type Drift,
  formatCidr,
  type IpFamily,
  inSlices,
  isExists,
  isNotFound,
  isUnsupported,
  type Removals,
  systemClock,
  yielder,
} from '../../core/index.ts';
import { type Netlink, withNetlink } from '../../netlink/index.ts';
import {
  Nftables,
  type NftChange,
  type NftElement,
  type NftRuleset,
  watchNftables,
} from '../../netlink/nftables/index.ts';
import { deleteRoute, getLink, listRoutes, newRoute, type RouteSpec } from '../../netlink/route/index.ts';
import { NETLINK_ROUTE, RT_TABLE_LOCAL, RTN_LOCAL } from '../../netlink/uapi/index.ts';
import { changesDrift } from '../../nft/drift/index.ts';
import { ForeignWatch, holdsNothingElse, tableRepairs, type WatchNftables } from '../../nft/index.ts';
import { LOCALHOST_STAND_INS, type Trace } from '../index.ts';
import { keyOfNodePort, type NodePort, nodePortOfKey } from './node-port.ts';
import { localhostLayout, localhostTable, nodePortSet } from './table.ts';

/** Gives the node the stand-in address of a family, and takes it away. */
export interface StandInAddress {
  isThere(): boolean;
  /** Nothing happens where it is there. */
  add(): void;
  /** Nothing happens where it is not there. @param removals hears of it, and says whether to do it. @default yes */
  remove(removals?: Removals): void;
}

/** Who is told that others have removed the table, and by what. */
export interface TableWatch {
  /** Opens the kernel's stream of changes. */
  readonly watch: WatchNftables;
  /** Called soon after it. */
  readonly gone: () => void;
}

export interface LocalhostRulesOptions {
  /** @default the kernel's */
  readonly open?: () => NftRuleset;
  /** @default the kernel's */
  readonly standIn?: StandInAddress;
  /** From the first `makeEqual` on. @default nobody is told */
  readonly watched?: TableWatch;
}

/** A reload of a firewall is several transactions. */
const DEBOUNCE_MS = 50;

/**
 * The table for NodePorts at localhost and the stand-in address of one family, in the kernel of the calling thread's
 * namespace. Calls must not overlap. Each table is changed in one transaction: no packet meets half of it.
 */
export class LocalhostRules {
  readonly #family: IpFamily;
  readonly #open: () => NftRuleset;
  readonly #standIn: StandInAddress;
  readonly #watch: ForeignWatch | undefined;
  #opened: NftRuleset | undefined;
  /** The ruleset's generation in which the table was last known to be right. */
  #rightGeneration: number | undefined;

  constructor(family: IpFamily, options: LocalhostRulesOptions = {}) {
    const { open = () => Nftables.open(), standIn = standInAddress(family), watched } = options;
    this.#family = family;
    this.#open = open;
    this.#standIn = standIn;
    if (!watched) return;
    this.#watch = new ForeignWatch({
      watch: watched.watch,
      tables: [localhostTable(family)],
      clock: systemClock,
      debounceMs: DEBOUNCE_MS,
      generation: () => this.#nft.generation(),
      // All but a flush waits for the next look, which has the rules of Services read as well.
      changed: () => {
        if (!hasTable(this.#nft, family)) watched.gone();
      },
    });
  }

  /**
   * Makes the kernel hold exactly this.
   *
   * @returns whether the table was not as it should be
   * @throws NftCommitError; KernelError; errors of the layers below
   */
  async makeEqual(ports: ReadonlySet<NodePort>): Promise<boolean> {
    this.#standIn.add();
    const generation = this.#nft.generation();
    this.#watch?.start(generation);
    if (this.#rightGeneration === generation) return false;
    const isRight = await this.#holds(ports);
    if (!isRight) await this.#nft.commitAsync(await this.#replacement(ports));
    // Changes of others between the two are looked at the next time.
    this.#rightGeneration = isRight ? generation : undefined;
    return !isRight;
  }

  /** In what the kernel differs from this; nothing is changed. Rejects as `makeEqual`. */
  async drift(ports: ReadonlySet<NodePort>): Promise<readonly Drift[]> {
    const { table } = localhostLayout(this.#family);
    const address: Drift[] = this.#standIn.isThere()
      ? []
      : [{ object: `route local ${formatCidr(standInRoute(this.#family))}`, difference: 'missing' }];
    if (this.#rightGeneration === this.#nft.generation() || (await this.#holds(ports))) return address;
    if (!hasTable(this.#nft, this.#family)) {
      return [...address, { object: `table ${table.family} ${table.name}`, difference: 'missing' }];
    }
    return [...address, ...(await inSlices(changesDrift(this.#nft, await this.#replacement(ports))))];
  }

  /**
   * Adds and removes NodePorts, after `makeEqual`.
   *
   * @throws NftCommitError when somebody else removed the table or an element: `makeEqual` mends it; errors of the layers below
   */
  async change(added: Iterable<NodePort>, removed: Iterable<NodePort>): Promise<void> {
    this.#rightGeneration = undefined;
    const changes = [await this.#elements('delete', removed), await this.#elements('add', added)];
    await this.#nft.commitAsync(changes.flat());
  }

  /**
   * Takes everything away. Nothing there, or a kernel without nf_tables, is no error.
   *
   * @param removals hears of it, and says whether to do it. @default yes
   */
  remove(removals?: Removals): void {
    this.#rightGeneration = undefined;
    if (hasTable(this.#nft, this.#family)) {
      const table = localhostTable(this.#family);
      const noted = { object: `nftables, table ${table.family} ${table.name}`, why: 'nodeplane’s table' };
      if (removals?.note(noted) !== false) this.#nft.commit([{ operation: 'destroy', object: table }]);
    }
    this.#standIn.remove(removals);
    this.close();
  }

  close(): void {
    this.#watch?.close();
    this.#opened?.close();
    this.#opened = undefined;
  }

  get #nft(): NftRuleset {
    this.#opened ??= this.#open();
    return this.#opened;
  }

  async #holds(ports: ReadonlySet<NodePort>): Promise<boolean> {
    const layout = localhostLayout(this.#family);
    if (tableRepairs(this.#nft, layout).length > 0 || !holdsNothingElse(this.#nft, layout)) return false;
    const present = await this.#nft.listElementsAsync(nodePortSet(this.#family));
    if (present.length !== ports.size) return false;
    const rest = yielder();
    for (const { key } of present) {
      if (!ports.has(nodePortOfKey(key))) return false;
      const wait = rest();
      if (wait) await wait;
    }
    return true;
  }

  async #replacement(ports: ReadonlySet<NodePort>): Promise<NftChange[]> {
    const { table, sets, chains } = localhostLayout(this.#family);
    const family = table.family;
    return [
      { operation: 'destroy', object: table },
      { operation: 'create', object: { ...table, comment: 'NodePorts at localhost, by nodeplane' } },
      ...sets.map((object): NftChange => ({ operation: 'create', object })),
      ...chains.map(({ chain }): NftChange => ({ operation: 'create', object: chain })),
      ...chains.flatMap(({ chain, rules }) =>
        rules.map((expressions): NftChange => {
          const rule = { kind: 'rule', family, table: table.name, chain: chain.name, expressions } as const;
          return { operation: 'add', object: rule };
        }),
      ),
      ...(await this.#elements('add', ports)),
    ];
  }

  async #elements(operation: 'add' | 'delete', ports: Iterable<NodePort>): Promise<NftChange[]> {
    const elements: NftElement[] = [];
    const rest = yielder();
    for (const port of ports) {
      elements.push({ key: keyOfNodePort(port) });
      const wait = rest();
      if (wait) await wait;
    }
    if (elements.length === 0) return [];
    const { family, table, name } = nodePortSet(this.#family);
    return [{ operation, object: { kind: 'elements', family, table, set: name, elements } }];
  }
}

/** Those of the kernel. @param gone called soon after others have removed the table */
export function kernelRules(family: IpFamily, gone: () => void): LocalhostRules {
  const watch: WatchNftables = (listener) => watchNftables(listener, { withoutOwn: true });
  return new LocalhostRules(family, { watched: { watch, gone } });
}

/** Where this leaves something in the kernel. */
export function localhostTrace(family: IpFamily): Trace {
  const clean = async (removals?: Removals) => {
    const rules = new LocalhostRules(family);
    try {
      rules.remove(removals);
    } finally {
      rules.close();
    }
  };
  return { name: `NodePorts at localhost ${family}`, isUsable: async () => true, clean, cleanOwn: clean };
}

function standInRoute(family: IpFamily): Cidr {
  return { address: LOCALHOST_STAND_INS[family], prefixLength: addressBits(family) };
}

/** In routing table local alone, on no interface: nobody takes it for an address of the node, or tells others of it. */
function standInAddress(family: IpFamily): StandInAddress {
  const destination = standInRoute(family);
  const withLoopback = <T>(act: (netlink: Netlink, route: RouteSpec, isThere: boolean) => T): T =>
    withNetlink(NETLINK_ROUTE, (netlink) => {
      const place = { table: RT_TABLE_LOCAL, outInterface: getLink(netlink, { name: 'lo' })?.index };
      const present = listRoutes(netlink, { family, ...place });
      const isThere = present.some((route) => formatCidr(route.destination) === formatCidr(destination));
      return act(netlink, { destination, type: RTN_LOCAL, ...place }, isThere);
    });
  return {
    isThere: () => withLoopback((_netlink, _route, isThere) => isThere),
    add: () =>
      withLoopback((netlink, route, isThere) => {
        if (!isThere) unless(isExists, () => netlink.execute(newRoute(route)));
      }),
    remove: (removals) =>
      withLoopback((netlink, route, isThere) => {
        const noted = { object: `route local ${formatCidr(destination)}`, why: 'nodeplane’s stand-in for localhost' };
        if (isThere && removals?.note(noted) !== false) unless(isNotFound, () => netlink.execute(deleteRoute(route)));
      }),
  };
}

function unless(isExpected: (error: unknown) => boolean, run: () => void): void {
  try {
    run();
  } catch (error) {
    if (!isExpected(error)) throw error;
  }
}

function hasTable(nft: NftRuleset, family: IpFamily): boolean {
  const wanted = localhostTable(family);
  try {
    return nft.listTables(wanted.family).some(({ name }) => name === wanted.name);
  } catch (error) {
    if (isUnsupported(error)) return false;
    throw error;
  }
}
