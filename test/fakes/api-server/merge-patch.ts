import { isMapping } from '../../../src/core/index.ts';

type Json = Readonly<Record<string, unknown>>;

/**
 * JSON merge patch (RFC 7386): mappings are merged field by field, `null` removes a field, everything else, lists
 * included, takes the place of what was there. Neither argument is changed.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isMapping(patch)) return patch;
  const result: Record<string, unknown> = isMapping(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

/**
 * Strategic merge patch as far as a Node's status needs it: as a merge patch, but `status.conditions` and `status.addresses`
 * are merged by `type`.
 */
export function strategicPatch(target: Json, patch: Json): unknown {
  const patched = mergePatch(target, patch) as Json;
  const [before, changes] = [target.status, patch.status].map((status) => (isMapping(status) ? status : {})) as [
    Json,
    Json,
  ];
  const status: Record<string, unknown> = { ...(patched.status as Json) };
  for (const list of ['conditions', 'addresses']) {
    if (Array.isArray(changes[list])) status[list] = mergeByType((before[list] ?? []) as Json[], changes[list]);
  }
  return { ...patched, status };
}

function mergeByType(before: readonly Json[], changes: readonly Json[]): readonly unknown[] {
  const changeOf = (type: unknown) => changes.find((change) => change.type === type);
  const added = changes.filter(({ type }) => before.every((entry) => entry.type !== type));
  return [...before.map((entry) => mergePatch(entry, changeOf(entry.type) ?? {})), ...added];
}
