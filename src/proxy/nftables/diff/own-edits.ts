import { isDeepStrictEqual } from 'node:util';
import type { Steps } from '../../../core/index.ts';
import type { CompiledPort } from '../compile/compile.ts';
import { endpointData, keyText } from '../compile/keys.ts';
import { isAffinity } from '../compile/schema.ts';
import type { Edits } from './edits.ts';

// The sets and chains a Service port has of its own: only one with ClientIP affinity has any.

/**
 * Puts what leads from one state of a port's own sets and chains to another into `edits`.
 *
 * @param edits undefined: nobody needs to know
 * @returns the sets that are made, or made anew
 */
export function* changeOwn(
  before: CompiledPort | undefined,
  after: CompiledPort | undefined,
  edits: Edits | undefined,
): Steps<Set<string>> {
  const made = new Set<string>();
  for (const [name, body] of after?.sets ?? []) {
    const old = before?.sets.get(name);
    if (old && isDeepStrictEqual(old, body)) continue;
    made.add(name);
    if (old) edits?.removeSets.add(name);
    edits?.addSets.set(name, body);
  }
  if (!edits) return made;
  for (const name of before?.sets.keys() ?? []) if (!after?.sets.has(name)) edits.removeSets.add(name);
  // A set that is made anew takes the rules that use it along.
  const rewrite = [...made].some((name) => before?.sets.has(name));
  for (const [name, body] of after?.chains ?? []) {
    const old = before?.chains.get(name);
    if (!old || rewrite || !isDeepStrictEqual(old, body))
      edits.writeChains.push({ name, body, exists: old !== undefined });
  }
  for (const name of before?.chains.keys() ?? []) if (!after?.chains.has(name)) edits.removeChains.push(name);
  if (!before || !after) return made;
  for (const [name, values] of yield* validValues(after)) {
    const gone = before.groups.some(({ affinity, endpoints }) => {
      return affinity === name && endpoints.some((endpoint) => !values.has(keyText(endpointData(endpoint))));
    });
    if (before.sets.has(name) && (gone || made.has(name))) edits.affinities.set(name, values);
  }
  return made;
}

/** The affinity maps of a port, with the values that are right in them (`keyText`). */
export function* validValues({ groups, sets }: CompiledPort): Steps<Map<string, ReadonlySet<string>>> {
  const values = new Map<string, ReadonlySet<string>>();
  for (const { affinity, endpoints } of groups) {
    if (affinity === undefined || !isAffinity(sets.get(affinity)!)) continue;
    const texts = new Set<string>();
    for (const endpoint of endpoints) {
      texts.add(keyText(endpointData(endpoint)));
      yield;
    }
    values.set(affinity, texts);
  }
  return values;
}
