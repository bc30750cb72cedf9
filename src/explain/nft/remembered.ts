import type { Expression, NftElement, NftRule, NftSet } from '../../netlink/nftables/index.ts';
import type { KnownBytes, Packet } from '../packet/index.ts';
import { dataLength, keyLength } from './find-element.ts';
import { loadPayload } from './load.ts';
import type { Registers } from './registers.ts';
import type { NftSituation, Rules } from './surroundings.ts';
import { isOwnTable } from './tables.ts';

type Dynset = Extract<Expression, { kind: 'dynset' }>;

/** Taken out of its set by a rule; there with a value that is not known. */
type Entry = NftElement | 'gone' | 'some value';

/** What rules have done to sets for a packet on its way: nothing of that is in the kernel. */
const REMEMBERED = new WeakMap<Packet, Map<string, Entry>>();

/** In place of a key: one that is not known was put into the set, or taken out. */
const SOME_KEY = '?';

/**
 * Puts an element into a set or takes it out, as `add @set { ... }`, `update @set { ... }` and `delete @set { ... }` do for a packet: one
 * that is there stays as it is, with its value. That the set is full is not thought of.
 */
export function remember(
  { operation, set: name, key, data }: Dynset,
  { family, table }: NftRule,
  registers: Registers,
  { rules, packet }: NftSituation,
): void {
  const set = rules.getSet({ kind: 'set', family, table, name });
  if (!set) return;
  const own = new Map(memoryOf(packet));
  REMEMBERED.set(packet, own);
  if (!isOwnTable(table)) packet.changedSets.add(`nf_tables ${idOf(set, '')}`);
  const length = keyLength(set);
  const wanted = length === undefined ? undefined : registers.read(key, length);
  if (!wanted?.isKnown) {
    own.set(idOf(set, SOME_KEY), 'some value');
    return;
  }
  const id = idOf(set, wanted.bytes);
  if (operation === 'delete') own.set(id, 'gone');
  else if (!elementFor(set, wanted.bytes, rules, packet)) own.set(id, elementOf(wanted, data, set, registers));
}

/** What rules have done for a packet, or for the same one before. */
function memoryOf(packet: Packet): ReadonlyMap<string, Entry> | undefined {
  return REMEMBERED.get(packet) ?? (packet.sentBefore && REMEMBERED.get(packet.sentBefore));
}

function elementOf(key: KnownBytes, data: Dynset['data'], set: NftSet, registers: Registers): Entry {
  if (data === undefined) return { key: key.bytes };
  const length = dataLength(set);
  const value = length === undefined ? undefined : registers.read(data, length);
  return value?.isKnown ? { key: key.bytes, data: value.bytes } : 'some value';
}

/** What a packet finds in a set by a key, as far as that is known: the catch-all element last of all (nft_lookup_eval). */
export function lookUp(set: NftSet, key: Uint8Array, rules: Rules, packet: Packet): NftElement | 'none' | undefined {
  if (isSomeKeyIn(set, packet)) return undefined;
  const found = elementFor(set, key, rules, packet);
  return found === 'some value' ? undefined : (found ?? rules.getElement(set, 'catch-all') ?? 'none');
}

/**
 * Whether rules may have put elements in, or taken them out, for packets of the flow before this one: none of those has been there yet.
 * Our own rules do that for first packets alone, and look at it for none else.
 */
export function isChangedBefore(set: NftSet, rules: Rules, packet: Packet): boolean {
  const { flow, isInvalid, connection } = packet;
  const isRelated = typeof connection === 'object' && connection.state !== 'new';
  const isLater = flow !== undefined || isInvalid || isRelated;
  return isLater && !isOwnTable(set.table) && rules.isWritten?.(set) === true;
}

/** The element with a key that the packet's rules have left there, or else the kernel's. */
function elementFor(set: NftSet, key: Uint8Array, rules: Rules, packet: Packet): NftElement | 'some value' | undefined {
  const own = memoryOf(packet)?.get(idOf(set, key));
  return own === 'gone' ? undefined : (own ?? rules.getElement(set, key));
}

function isSomeKeyIn(set: NftSet, packet: Packet): boolean {
  return memoryOf(packet)?.has(idOf(set, SOME_KEY)) ?? false;
}

/** The same for packets of which the same is remembered. */
export function rememberedText(packet: Packet): string {
  const textOf = (entry: Entry) =>
    typeof entry === 'string' ? entry : entry.data && Buffer.from(entry.data).toString('hex');
  return [...(memoryOf(packet) ?? [])].map(([id, entry]) => `${id} ${textOf(entry)}`).join();
}

/** Expressions that change nothing but registers, and end the rule at most. */
const HARMLESS: readonly Expression['kind'][] = ['payload', 'meta', 'numgen', 'counter', 'lookup'];

/**
 * Whether a rule draws only to remember what is remembered already: whatever came up, nothing would change. Affinity draws
 * several times (proxy/nftables/compile/balance.ts), and all that could come up would be too much to walk.
 */
export function isIdle({ expressions, family, table }: NftRule, { rules, packet }: NftSituation): boolean {
  const last = expressions.at(-1);
  if (last?.kind !== 'dynset' || last.data === undefined || last.expressions?.length) return false;
  const others = expressions.slice(0, -1);
  if (!others.some(({ kind }) => kind === 'numgen')) return false;
  if (others.some((one) => !HARMLESS.includes(one.kind) || (one.kind === 'lookup' && one.to === 'verdict')))
    return false;
  const load = others.findLast((one) => one.kind === 'payload' && one.to === last.key);
  const set = rules.getSet({ kind: 'set', family, table, name: last.set });
  if (load?.kind !== 'payload' || !set || isSomeKeyIn(set, packet)) return false;
  const key = loadPayload(load, packet);
  if (key === 'nothing' || !key.isKnown || key.length !== keyLength(set)) return false;
  return elementFor(set, key.bytes, rules, packet) !== undefined;
}

function idOf({ family, table, name }: NftSet, key: Uint8Array | typeof SOME_KEY | ''): string {
  return [family, table, name, typeof key === 'string' ? key : Buffer.from(key).toString('hex')].join('\0');
}
