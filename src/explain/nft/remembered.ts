import { type Expression, type NftElement, type NftRule, typeLength } from '../../netlink/nftables/index.ts';
import type { Packet } from '../packet/index.ts';
import { loadPayload } from './load.ts';
import type { Registers } from './registers.ts';
import type { NftSituation, Rules } from './surroundings.ts';

type Dynset = Extract<Expression, { kind: 'dynset' }>;

/** What rules have put into sets for a packet on its way: nothing of that is in the kernel. */
const REMEMBERED = new WeakMap<Packet, Map<string, NftElement>>();

/**
 * Puts an element into a set, as `add @set { ... }` and `update @set { ... }` do for a packet: one that is there stays as it is, with
 * its value. That the set is full is not thought of.
 */
export function remember(
  { operation, set: name, key, data }: Dynset,
  { family, table }: NftRule,
  registers: Registers,
  { rules, packet }: NftSituation,
): void {
  const set = rules.getSet({ kind: 'set', family, table, name });
  if (operation === 'delete' || !set || set.key.length === 0 || set.key.includes('unknown')) return;
  const wanted = registers.read(key, typeLength(set.key));
  if (!wanted.isKnown || withRemembered(rules, packet).getElement(set, wanted.bytes)) return;
  const types = Array.isArray(set.data) ? set.data : undefined;
  const value = data === undefined || !types ? undefined : registers.read(data, typeLength(types));
  if (value && !value.isKnown) return;
  const own = REMEMBERED.get(packet) ?? new Map<string, NftElement>();
  REMEMBERED.set(packet, own.set(idOf(set, wanted.bytes), { key: wanted.bytes, ...(value && { data: value.bytes }) }));
}

/** The rules, and what they remember of this packet. */
export function withRemembered(rules: Rules, packet: Packet): Pick<Rules, 'getElement'> {
  return {
    getElement: (set, key) => rules.getElement(set, key) ?? REMEMBERED.get(packet)?.get(idOf(set, key)),
  };
}

/** The same for packets of which the same is remembered. */
export function rememberedText(packet: Packet): string {
  return [...(REMEMBERED.get(packet) ?? [])]
    .map(([id, { data }]) => `${id} ${data && Buffer.from(data).toString('hex')}`)
    .join();
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
  if (load?.kind !== 'payload' || !set || set.key.includes('unknown')) return false;
  const key = loadPayload(load, packet);
  if (key === 'nothing' || !key.isKnown || key.length !== typeLength(set.key)) return false;
  return withRemembered(rules, packet).getElement(set, key.bytes) !== undefined;
}

function idOf({ family, table, name }: { family: string; table: string; name: string }, key: Uint8Array): string {
  return [family, table, name, Buffer.from(key).toString('hex')].join('\0');
}
