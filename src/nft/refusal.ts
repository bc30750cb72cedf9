/** What a rule does with every packet that comes to it. */
export type ForAll =
  | { readonly kind: 'refuse' | 'accept' | 'return' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };

/**
 * The chain in which all packets that come to `chain` are refused in the end, whatever it lets by before: itself, or one that it leads
 * all of them to. Undefined: there is none.
 *
 * @param rulesOf the rules of a chain in their order; undefined: one that selects packets, or lets them go on
 */
export function refusingChain(
  chain: string,
  rulesOf: (chain: string) => Iterable<ForAll | undefined>,
): string | undefined {
  const visited = new Set<string>();
  /** Null: all are let by for good. */
  const search = (name: string): string | null | undefined => {
    if (visited.has(name)) return undefined;
    visited.add(name);
    for (const rule of rulesOf(name)) {
      if (!rule) continue;
      if (!('chain' in rule)) return { refuse: name, accept: null, return: undefined }[rule.kind];
      const found = search(rule.chain);
      if (found !== undefined || rule.kind === 'goto') return found;
    }
    return undefined;
  };
  return search(chain) ?? undefined;
}
