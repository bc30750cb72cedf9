import { isMapping, nearestWord } from '../../../core/index.ts';
import type { FieldPath, FieldProblem } from '../../objects/field-reader.ts';
import type { KnownFields } from './known-fields.ts';

/** A field nobody reads. */
export interface UnknownField extends FieldProblem {
  /** The field it probably stands for. */
  readonly meant: FieldPath | undefined;
}

/**
 * The fields of an object that the API does not have, the first `most` of them. Nobody reads them: what was to be said there
 * is not in force.
 */
export function unknownFields(value: unknown, known: KnownFields, most: number): readonly UnknownField[] {
  const found: UnknownField[] = [];
  collect(value, known, [], most, found);
  return found;
}

function collect(value: unknown, known: KnownFields, path: FieldPath, most: number, found: UnknownField[]): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && found.length < most; index++) {
      collect(value[index], known, [...path, index], most, found);
    }
    return;
  }
  if (!isMapping(value)) return;
  for (const name in value) {
    if (found.length >= most) return;
    const below = known.below.get(name);
    if (below) collect(value[name], below, [...path, name], most, found);
    else if (!known.names.has(name) && !isAside(name, path)) found.push(unknownField(name, path, value, known));
  }
}

/** `x-ports: &ports …` at the top of a document holds what its aliases stand for. */
function isAside(name: string, path: FieldPath): boolean {
  return path.length === 0 && name.startsWith('x-');
}

function unknownField(
  name: string,
  path: FieldPath,
  beside: Readonly<Record<string, unknown>>,
  known: KnownFields,
): UnknownField {
  const nearest = nearestWord(name, known.names);
  // What it might stand for may be there as well.
  const meant = nearest === undefined || nearest in beside ? undefined : nearest;
  const remedy = meant === undefined ? 'take it out' : `did you mean "${meant}"?`;
  return {
    path: [...path, name],
    message: `The API has no such field here, and what it says is not read; ${remedy}`,
    meant: meant === undefined ? undefined : [...path, meant],
  };
}

/** Without what is only told because a field is misspelt: that the right one is missing. */
export function withoutConsequences(
  problems: readonly FieldProblem[],
  unknown: readonly UnknownField[],
): readonly FieldProblem[] {
  const meant = new Set(unknown.map((field) => JSON.stringify(field.meant)));
  return problems.filter(({ path }) => !meant.has(JSON.stringify(path)));
}
