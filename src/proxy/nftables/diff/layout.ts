import { atOnce, type IpFamily, insertSorted, removeSorted, type Steps } from '../../../core/index.ts';
import { byOwner, type NodePlan, type ServicePortPlan, translatedNodePortAddresses } from '../../index.ts';
import { balanceChain } from '../compile/balance.ts';
import type { ChainBody } from '../compile/chain.ts';
import { type Claim, type CompiledPort, compilePort, type Entry } from '../compile/compile.ts';
import { fixedChains } from '../compile/fixed-chains.ts';
import { keyText } from '../compile/keys.ts';
import { parseBalanceChainName, SETS } from '../compile/names.ts';
import { fixedSets, type SetBody } from '../compile/schema.ts';
import { type Edits, emptyEdits, pushElement } from './edits.ts';
import { ElementList } from './element-list.ts';
import { changeEntries, entryElement } from './entry-edits.ts';
import { placeGroups, type SlotHints } from './groups.ts';
import { changeOwn, validValues } from './own-edits.ts';
import type { PlacedGroup } from './placed-group.ts';

/** Everything that has to be in our table. */
export interface Wanted {
  readonly sets: ReadonlyMap<string, SetBody>;
  readonly chains: ReadonlyMap<string, ChainBody>;
  /** By set; those of affinity maps are not ours to say. */
  readonly elements: ReadonlyMap<string, ElementList>;
  /** Affinity maps, with the values that are right in them (`keyText`). */
  readonly affinities: ReadonlyMap<string, ReadonlySet<string>>;
}

/** An address and port, or a NodePort. */
interface Destination {
  /** By `byOwner`: who has it comes first. */
  readonly claims: Claim[];
  /** Whose elements are in the maps now. */
  placed: Claim | undefined;
  groups: readonly PlacedGroup[];
}

/** An element that several ports may want. */
interface SharedElement {
  readonly set: string;
  readonly key: Uint8Array;
  wantedBy: number;
  placed: boolean;
}

/** What a port has of its own. */
interface Own {
  readonly compiled: CompiledPort;
  readonly groups: readonly PlacedGroup[];
}

/**
 * The table of a family as it should be, kept up to date one Service port at a time: what a change costs depends on the
 * change, not on how many Services there are. Nothing here touches the kernel.
 */
export class Layout {
  readonly #family: IpFamily;
  readonly #node: NodePlan;
  readonly #ports = new Map<string, CompiledPort>();
  readonly #destinations = new Map<string, Destination>();
  readonly #shared = new Map<string, SharedElement>();
  readonly #own = new Map<string, Own>();
  /** Of the chains that balance, those that are there. They stay when nobody needs them for the moment. */
  readonly #balanceChains = new Map<string, ChainBody>();
  readonly #touchedDestinations = new Set<string>();
  readonly #touchedShared = new Set<SharedElement>();
  readonly #touchedPorts = new Set<string>();
  readonly #counts = { elements: 0, rules: 0 };

  constructor(family: IpFamily, node: NodePlan) {
    this.#family = family;
    this.#node = node;
    for (const { rules } of fixedChains(family, node).values()) this.#counts.rules += rules.length;
    const addresses = translatedNodePortAddresses(family, node);
    if (addresses !== 'all') this.#counts.elements += addresses.length;
  }

  /** How many elements and rules are placed. */
  get totals(): { readonly elements: number; readonly rules: number } {
    return { ...this.#counts };
  }

  /** What each Service port was compiled to, by its key. */
  get compiled(): ReadonlyMap<string, CompiledPort> {
    return this.#ports;
  }

  /** With places for a pause: a port may have thousands of endpoints and addresses. */
  *upsert(port: ServicePortPlan): Steps<void> {
    yield* this.#replace(port.key, yield* compilePort(port, this.#node));
  }

  /** @param key of the port; nothing happens when it is not there */
  remove(key: string): void {
    if (this.#ports.has(key)) atOnce(this.#replace(key, undefined));
  }

  /** What the changes since the last call, or since `place`, do to the table. */
  *takeEdits(): Steps<Edits> {
    const edits = emptyEdits();
    yield* this.#settle(edits, undefined);
    return edits;
  }

  /** As `takeEdits` when the whole table is going to be compared anyway, keeping to what the kernel has where there is a choice. */
  place(hints?: SlotHints): Steps<void> {
    return this.#settle(undefined, hints);
  }

  /** Everything that is placed. */
  *wanted(): Steps<Wanted> {
    const sets = new Map<string, SetBody>(Object.entries(fixedSets(this.#family)));
    const chains = new Map([...fixedChains(this.#family, this.#node), ...this.#balanceChains]);
    const elements = new Map<string, ElementList>();
    const affinities = new Map<string, ReadonlySet<string>>();
    const listOf = (set: string): ElementList => {
      let list = elements.get(set);
      if (!list) {
        list = new ElementList();
        elements.set(set, list);
      }
      return list;
    };
    const addresses = translatedNodePortAddresses(this.#family, this.#node);
    if (addresses !== 'all') {
      for (const { bytes } of addresses) listOf(SETS.nodePortIps).add({ key: bytes });
    }
    for (const { placed, groups } of this.#destinations.values()) {
      for (const entry of placed?.entries ?? []) listOf(entry.set).add(entryElement(entry, placed!));
      for (const group of groups) listOf(group.set).add(group);
      yield;
    }
    for (const { set, key, placed } of this.#shared.values()) if (placed) listOf(set).add({ key });
    for (const { compiled, groups } of this.#own.values()) {
      for (const [name, body] of compiled.sets) sets.set(name, body);
      for (const [name, body] of compiled.chains) chains.set(name, body);
      for (const group of groups) listOf(group.set).add(group);
      for (const [name, values] of yield* validValues(compiled)) affinities.set(name, values);
      yield;
    }
    return { sets, chains, elements, affinities };
  }

  *#replace(key: string, after: CompiledPort | undefined): Steps<void> {
    const before = this.#ports.get(key);
    for (const claim of before?.claims ?? []) {
      removeSorted(this.#destinations.get(claim.id)!.claims, claim, byOwner);
      this.#touchedDestinations.add(claim.id);
    }
    for (const claim of after?.claims ?? []) this.#claim(claim);
    for (const { set, key: element } of before?.shared ?? []) {
      this.#share(set, element, -1);
      yield;
    }
    for (const { set, key: element } of after?.shared ?? []) {
      this.#share(set, element, 1);
      yield;
    }
    if (after) this.#ports.set(key, after);
    else this.#ports.delete(key);
    if (hasOwn(before) || hasOwn(after)) this.#touchedPorts.add(key);
  }

  #claim(claim: Claim): void {
    const destination = this.#destinations.get(claim.id);
    if (destination) insertSorted(destination.claims, claim, byOwner);
    else this.#destinations.set(claim.id, { claims: [claim], placed: undefined, groups: NO_GROUPS });
    this.#touchedDestinations.add(claim.id);
  }

  #share(set: string, key: Uint8Array, change: number): void {
    const id = `${set} ${keyText(key)}`;
    let element = this.#shared.get(id);
    if (!element) {
      element = { set, key, wantedBy: 0, placed: false };
      this.#shared.set(id, element);
    }
    element.wantedBy += change;
    this.#touchedShared.add(element);
  }

  *#settle(edits: Edits | undefined, hints: SlotHints | undefined): Steps<void> {
    for (const id of this.#touchedDestinations) {
      this.#settleDestination(id, edits, hints);
      yield;
    }
    this.#touchedDestinations.clear();
    for (const element of this.#touchedShared) {
      const wanted = element.wantedBy > 0;
      if (!wanted) this.#shared.delete(`${element.set} ${keyText(element.key)}`);
      if (wanted === element.placed) continue;
      element.placed = wanted;
      this.#counts.elements += wanted ? 1 : -1;
      const { set, key } = element;
      if (edits) pushElement(wanted ? edits.addElements : edits.removeElements, set, { key });
    }
    this.#touchedShared.clear();
    for (const key of this.#touchedPorts) {
      yield* this.#settleOwn(key, edits, hints);
      yield;
    }
    this.#touchedPorts.clear();
  }

  #settleDestination(id: string, edits: Edits | undefined, hints: SlotHints | undefined): void {
    const destination = this.#destinations.get(id)!;
    const { placed: before } = destination;
    const after = destination.claims[0];
    destination.placed = after;
    if (!after) this.#destinations.delete(id);
    this.#ensureBalanceChains(after?.entries ?? [], edits);
    if (edits) changeEntries(before, after, edits);
    const former = destination.groups;
    destination.groups = placeGroups(former, after?.groups ?? [], edits, hints);
    this.#counts.elements += (after?.entries.length ?? 0) - (before?.entries.length ?? 0);
    this.#counts.elements += countSlots(destination.groups) - countSlots(former);
  }

  /** Keeps a chain that balances and is there already, should nobody need it either. */
  keepBalanceChain(name: string): void {
    this.#ensureBalanceChain(name, undefined);
  }

  #ensureBalanceChains(entries: readonly Entry[], edits: Edits | undefined): void {
    for (const { verdict } of entries) {
      if (verdict?.kind === 'goto') this.#ensureBalanceChain(verdict.chain, edits);
    }
  }

  #ensureBalanceChain(name: string, edits: Edits | undefined): void {
    if (this.#balanceChains.has(name)) return;
    const parsed = parseBalanceChainName(name);
    if (!parsed) return;
    const body = balanceChain(this.#family, this.#node, parsed.kind, parsed.slots);
    this.#balanceChains.set(name, body);
    this.#counts.rules += body.rules.length;
    edits?.writeChains.push({ name, body, exists: false });
  }

  *#settleOwn(key: string, edits: Edits | undefined, hints: SlotHints | undefined): Steps<void> {
    const before = this.#own.get(key);
    const wanted = this.#ports.get(key);
    const after = hasOwn(wanted) ? wanted : undefined;
    const made = yield* changeOwn(before?.compiled, after, edits);
    // Elements of a set that goes or is made anew need not be removed one by one.
    const kept = (before?.groups ?? []).filter(({ set }) => after?.sets.has(set) && !made.has(set));
    const groups = placeGroups(kept, after?.groups ?? [], edits, hints);
    this.#counts.elements += countSlots(groups) - countSlots(before?.groups ?? []);
    this.#counts.rules += countRules(after) - countRules(before?.compiled);
    if (after) this.#own.set(key, { compiled: after, groups });
    else this.#own.delete(key);
  }
}

const NO_GROUPS: readonly PlacedGroup[] = [];

function countSlots(groups: readonly PlacedGroup[]): number {
  return groups.reduce((sum, { slots }) => sum + slots.length, 0);
}

function countRules(port: CompiledPort | undefined): number {
  let count = 0;
  for (const { rules } of port?.chains.values() ?? []) count += rules.length;
  return count;
}

function hasOwn(port: CompiledPort | undefined): port is CompiledPort {
  return port !== undefined && port.chains.size + port.sets.size > 0;
}
