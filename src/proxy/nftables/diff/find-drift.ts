import { type Drift, driftLines, type IpFamily, type Steps } from '../../../core/index.ts';
import { type NftChain, type NftElement, type NftFamily, nftFamily } from '../../../netlink/nftables/index.ts';
import { baseText, elementTexts, ruleText, setBody } from '../../../netlink/nftables/text/index.ts';
import { sameBase } from '../../../nft/index.ts';
import type { ChainBody } from '../compile/chain.ts';
import { describeKey, keyText } from '../compile/keys.ts';
import type { SetBody } from '../compile/schema.ts';
import { staleClients } from './affinity.ts';
import type { KernelTable } from './kernel-state.ts';
import type { Wanted } from './layout.ts';
import { reconcile } from './reconcile.ts';

/** The table that is compared. */
export interface ComparedTable {
  readonly family: IpFamily;
  readonly name: string;
}

/** Says where the kernel's table differs from what was committed: what a repair would write, told as `nft` prints it. */
export function* findDrift(wanted: Wanted, kernel: KernelTable, { family, name }: ComparedTable): Steps<Drift[]> {
  const edits = yield* reconcile(wanted, kernel);
  if (!edits) return shapeDrift(wanted, kernel, { family, name });
  const drift: Drift[] = [];
  for (const set of new Set([...edits.addSets.keys(), ...edits.removeSets])) {
    const [ours, theirs] = [edits.addSets.get(set), edits.removeSets.has(set) ? kernel.sets.get(set) : undefined];
    const lines = driftLines(setLines(ours), setLines(theirs));
    drift.push({ object: `set ${set}`, difference: differenceOf(ours, theirs), ...lines });
  }
  const rules = ruleTexts(nftFamily(family), wanted, kernel);
  for (const chain of [...edits.writeChains.map((write) => write.name), ...edits.removeChains]) {
    yield;
    const [ours, theirs] = [
      wanted.chains.get(chain),
      kernel.chains.has(chain) ? (kernel.rules.get(chain) ?? []) : undefined,
    ];
    const lines = driftLines(rules(ours?.rules), rules(theirs));
    drift.push({ object: `chain ${chain}`, difference: differenceOf(ours, theirs), ...lines });
  }
  for (const [set, body] of wanted.sets) {
    const added = yield* byKey(edits.addElements.get(set));
    const removed = yield* byKey(edits.removeElements.get(set));
    // What is deleted is named by its key alone; what it leads to is in what was read.
    const present = removed.size === 0 ? new Map() : yield* byKey(kernel.elements.get(set));
    for (const id of new Set([...added.keys(), ...removed.keys()])) {
      yield;
      const [ours, theirs] = [added.get(id), removed.has(id) ? (present.get(id) ?? removed.get(id)) : undefined];
      const object = `element ${set} ${describeKey((ours ?? theirs!).key, body.key)}`;
      const texts = (element: NftElement | undefined) => (element ? elementTexts([element], body) : []);
      drift.push({ object, difference: differenceOf(ours, theirs), ours: texts(ours), theirs: texts(theirs) });
    }
  }
  // What packets wrote is no difference, unless it leads clients to an endpoint that is not there.
  for (const [set, values] of edits.affinities) {
    const body = wanted.sets.get(set);
    if (!body || edits.addSets.has(set)) continue;
    for (const client of staleClients(kernel.elements.get(set) ?? [], values)) {
      yield;
      const object = `element ${set} ${describeKey(client.key, body.key)}`;
      drift.push({ object, difference: 'unexpected', ours: [], theirs: elementTexts([client], body) });
    }
  }
  return drift;
}

/** Why a table is made anew: it sleeps, chains of it are hooked in otherwise, or, told by its name alone, its sets are others. */
function shapeDrift(wanted: Wanted, kernel: KernelTable, { family, name }: ComparedTable): Drift[] {
  const table = { object: `table ${name}`, difference: 'changed' } as const;
  if (kernel.dormant) return [{ ...table, ours: [], theirs: ['flags dormant;'] }];
  const drift = [...wanted.chains].flatMap(([chain, body]): Drift[] => {
    const present = kernel.chains.get(chain);
    if (!present || sameBase(present.base, body.base)) return [];
    const lines = ({ base }: ChainBody | NftChain) => (base ? [baseText(base, nftFamily(family))] : []);
    return [{ object: `chain ${chain}`, difference: 'changed', ...driftLines(lines(body), lines(present)) }];
  });
  return drift.length > 0 ? drift : [table];
}

function* byKey(elements: readonly NftElement[] = []): Steps<Map<string, NftElement>> {
  const found = new Map<string, NftElement>();
  for (const element of elements) {
    yield;
    const { key, keyEnd } = element;
    found.set(keyEnd ? keyText(key) + keyText(keyEnd) : keyText(key), element);
  }
  return found;
}

function setLines(set: SetBody | undefined): readonly string[] {
  return set ? setBody(set) : [];
}

function ruleTexts(family: NftFamily, wanted: Wanted, kernel: KernelTable) {
  const sets = (name: string) => wanted.sets.get(name) ?? kernel.sets.get(name);
  return (rules: readonly Pick<ChainBody['rules'][number], 'expressions'>[] = []) =>
    rules.map(({ expressions }) => ruleText(expressions, family, sets));
}

function differenceOf(ours: unknown, theirs: unknown): Drift['difference'] {
  if (ours !== undefined && theirs !== undefined) return 'changed';
  return ours === undefined ? 'unexpected' : 'missing';
}
