import type { IpFamily } from '../../src/core/index.ts';
import { expressionKey, type NftElement, type NftRuleset, nftFamily } from '../../src/netlink/nftables/index.ts';
import { ruleText } from '../../src/netlink/nftables/text/index.ts';
import { TABLE_NAME } from '../../src/proxy/nftables/index.ts';

/** A table as plain data, in an order that does not depend on who came first. */
export type Snapshot = Readonly<Record<string, unknown>>;

/**
 * Everything in a table. Which of the endpoints of a Service is in which slot is left to chance: they are compared as
 * a set, with the slots there are.
 */
export function snapshot(nft: NftRuleset, family: IpFamily, table: string = TABLE_NAME): Snapshot {
  const ref = { kind: 'table', family: nftFamily(family), name: table } as const;
  const dormant = nft.listTables(ref.family).some(({ name, dormant }) => name === table && dormant);
  const result: Record<string, unknown> = dormant ? { dormant } : {};
  for (const { name, base, comment } of nft.listChains(ref)) result[`chain ${name}`] = { base, comment, rules: [] };
  const sets = new Map(nft.listSets(ref).map((set) => [set.name, set]));
  for (const { chain, expressions, comment } of nft.listRules(ref)) {
    const text = ruleText(expressions, ref.family, (set) => sets.get(set));
    // The text is for reading; two rules of one text may differ in the registers that they use.
    const is = expressions.map(expressionKey);
    (result[`chain ${chain}`] as { rules: unknown[] }).rules.push({ text, comment, is });
  }
  for (const set of sets.values()) {
    const { name, key, data, flags, size, timeoutMs, comment } = set;
    const elements = flags?.includes('dynamic') ? [] : describe(nft.listElements(set), key.at(-1) === 'integer');
    result[`set ${name}`] = { key, data, flags, size, timeoutMs, comment, elements };
  }
  return result;
}

const hex = (bytes: Uint8Array | undefined) => (bytes ? Buffer.from(bytes).toString('hex') : '');

function describe(elements: readonly NftElement[], slots: boolean): string[] {
  if (!slots) {
    return elements
      .map(({ key, keyEnd, verdict, data, comment }) =>
        [hex(key), hex(keyEnd), JSON.stringify(verdict), hex(data), comment].join(' '),
      )
      .sort();
  }
  const groups = new Map<string, { slots: string[]; endpoints: string[] }>();
  for (const { key, data } of elements) {
    const prefix = hex(key.subarray(0, -4));
    const group = groups.get(prefix) ?? { slots: [], endpoints: [] };
    group.slots.push(hex(key.subarray(-4)));
    group.endpoints.push(hex(data));
    groups.set(prefix, group);
  }
  return [...groups]
    .map(([prefix, group]) => `${prefix}: ${group.slots.sort().join(' ')} -> ${group.endpoints.sort().join(' ')}`)
    .sort();
}
