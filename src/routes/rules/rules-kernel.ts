import { IP_FAMILIES, isNotFound, KernelError, type Removals } from '../../core/index.ts';
import type { NftChange, NftElement, NftElements, NftRuleset, NftSet } from '../../netlink/nftables/index.ts';
import { type TableLayout, tableRepairs } from '../../nft/index.ts';
import { type Element, elementText, partsOf } from './elements.ts';
import { addressSetName, RULES_TABLE, setRef } from './table.ts';
import type { ElementChanges } from './wanted-elements.ts';

/** What a commit came to. */
export interface RuleCommit {
  /** The ruleset's generation afterwards; undefined when nothing had to be written. */
  readonly generation: number | undefined;
  /** How many elements were added or removed. */
  readonly elements: number;
  /** The table was not there, or had other rules: it was made anew. */
  readonly rebuilt: boolean;
}

/** The set an element goes to when it leaves another. */
const SUCCESSORS: ReadonlyMap<string, string> = new Map(
  IP_FAMILIES.map((family) => [addressSetName('peers', family), addressSetName('former-peers', family)]),
);

/**
 * Makes the table what it is to be, whatever is there. That is one transaction: no packet meets a rule without the elements it
 * looks up, and none meets both tables or neither when one is made in place of another.
 *
 * @throws NftCommitError; KernelError; ERR_NETLINK_SOCKET
 */
export async function reconcileRules(
  ruleset: NftRuleset,
  layout: TableLayout,
  wanted: readonly Element[],
): Promise<RuleCommit> {
  const sets = await ruleset.listSetsAsync(RULES_TABLE);
  const present = new Set<Element>();
  for (const { name, flags = [] } of sets) {
    // Those with a timeout are filled by time and by packets, not by us.
    if (flags.includes('timeout')) continue;
    for (const { key } of await elementsOrNone(ruleset, name)) present.add(elementText(name, key));
  }
  const desired = new Set(wanted);
  const left = [...present].filter((element) => !desired.has(element));
  if (isIntact(ruleset, layout, sets)) {
    return await updateRules(ruleset, layout, { joined: wanted.filter((element) => !present.has(element)), left });
  }
  const { generation } = await ruleset.commitAsync([
    { operation: 'destroy', object: layout.table },
    { operation: 'add', object: layout.table },
    ...layout.sets.map((object): NftChange => ({ operation: 'add', object })),
    ...elementChanges('add', wanted),
    ...elementChanges('add', successors(layout, left)),
    ...layout.chains.map(({ chain }): NftChange => ({ operation: 'add', object: chain })),
    ...layout.chains.flatMap(({ chain: { family, table, name }, rules }) =>
      rules.map((expressions): NftChange => {
        return { operation: 'add', object: { kind: 'rule', family, table, chain: name, expressions } };
      }),
    ),
  ]);
  return { generation, elements: wanted.length, rebuilt: true };
}

/**
 * Writes what has changed since the last commit.
 *
 * @param changes of sets of the layout alone
 * @throws NftCommitError when the kernel does not hold what was written; KernelError; ERR_NETLINK_SOCKET
 */
export async function updateRules(
  ruleset: NftRuleset,
  layout: TableLayout,
  { joined, left }: ElementChanges,
): Promise<RuleCommit> {
  const { generation } = await ruleset.commitAsync([
    ...elementChanges('add', joined),
    ...elementChanges('add', successors(layout, left)),
    ...elementChanges('delete', left),
  ]);
  return { generation, elements: joined.length + left.length, rebuilt: false };
}

/**
 * Removes the table. Returns whether there was one. Throws NftCommitError, KernelError.
 *
 * @param removals hears of it, and says whether to do it. @default yes
 */
export function removeRules(ruleset: NftRuleset, removals?: Removals): boolean {
  const { family, name } = RULES_TABLE;
  if (!hasRules(ruleset)) return false;
  const noted = { object: `nftables, table ${family} ${name}`, why: 'nodeplane’s table' };
  if (removals?.note(noted) !== false) ruleset.commit([{ operation: 'destroy', object: RULES_TABLE }]);
  return true;
}

/** Whether there is a table, whatever is in it. A kernel without nf_tables has none. Throws KernelError. */
export function hasRules(ruleset: NftRuleset): boolean {
  try {
    return ruleset.listTables(RULES_TABLE.family).some(({ name }) => name === RULES_TABLE.name);
  } catch (error) {
    // Nobody answers for that subsystem of nfnetlink.
    if (error instanceof KernelError && error.errnoName === 'EINVAL') return false;
    throw error;
  }
}

/** Whether table, sets, chains and rules are those of the layout. */
function isIntact(ruleset: NftRuleset, layout: TableLayout, sets: readonly NftSet[]): boolean {
  const namesOf = (objects: readonly { readonly name: string }[]) =>
    objects
      .map(({ name }) => name)
      .sort()
      .join();
  return (
    namesOf(sets) === namesOf(layout.sets) &&
    namesOf(ruleset.listChains(layout.table)) === namesOf(layout.chains.map(({ chain }) => chain)) &&
    tableRepairs(ruleset, layout).length === 0
  );
}

function successors({ sets }: TableLayout, left: readonly Element[]): Element[] {
  return left.flatMap((element) => {
    const [set, key] = partsOf(element);
    const successor = SUCCESSORS.get(set);
    return successor !== undefined && sets.some(({ name }) => name === successor) ? [`${successor} ${key}`] : [];
  });
}

/** One change for each set. */
function elementChanges(operation: 'add' | 'delete', elements: readonly Element[]): NftChange[] {
  const bySet = new Map<string, NftElement[]>();
  for (const element of elements) {
    const [set, key] = partsOf(element);
    const keys = bySet.get(set) ?? [];
    keys.push({ key: Uint8Array.from(Buffer.from(key, 'hex')) });
    bySet.set(set, keys);
  }
  const { family, name: table } = RULES_TABLE;
  return [...bySet].map(([set, of]): NftChange => {
    return { operation, object: { kind: 'elements', family, table, set, elements: of } satisfies NftElements };
  });
}

async function elementsOrNone(ruleset: NftRuleset, set: string): Promise<NftElement[]> {
  try {
    return await ruleset.listElementsAsync(setRef(set));
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}
