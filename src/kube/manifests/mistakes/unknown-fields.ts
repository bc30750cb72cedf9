import { nearestWord } from '../../../core/index.ts';
import { type FieldPath, type FieldProblem, isMapping } from '../../objects/field-reader.ts';
import type { KnownFields } from './known-fields.ts';

/**
 * The fields of an object that the API does not have, the first `most` of them. Nobody reads them: what was to be said there
 * is not in force.
 */
export function unknownFields(value: unknown, known: KnownFields, most: number): readonly FieldProblem[] {
  const found: FieldProblem[] = [];
  collect(value, known, [], most, found);
  return found;
}

function collect(value: unknown, known: KnownFields, path: FieldPath, most: number, found: FieldProblem[]): void {
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
    else if (!known.names.has(name)) found.push({ path: [...path, name], message: unknownField(name, value, known) });
  }
}

function unknownField(name: string, beside: Readonly<Record<string, unknown>>, known: KnownFields): string {
  const meant = nearestWord(name, known.names);
  // What it might stand for may be there as well.
  const remedy = meant === undefined || meant in beside ? 'take it out' : `did you mean "${meant}"?`;
  return `The API has no such field here, and what it says is not read; ${remedy}`;
}
