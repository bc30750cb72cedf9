/**
 * Whether two decoded objects say the same: plain JSON data, in which a member that is undefined is as one that is missing.
 * `isDeepStrictEqual` of node:util, made for everything there is, is a large part of what an update of 10,000 ports costs.
 */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && sameLists(a, b);
  return sameMembers(a as Mapping, b as Mapping) && hasNoOthers(b as Mapping, a as Mapping);
}

type Mapping = Readonly<Record<string, unknown>>;

function sameLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (!sameJson(a[index], b[index])) return false;
  return true;
}

function sameMembers(a: Mapping, b: Mapping): boolean {
  for (const key in a) if (!sameJson(a[key], Object.hasOwn(b, key) ? b[key] : undefined)) return false;
  return true;
}

function hasNoOthers(a: Mapping, than: Mapping): boolean {
  for (const key in a) if (a[key] !== undefined && !Object.hasOwn(than, key)) return false;
  return true;
}
