import type { NftChange, NftElements, NftFamily, NftObject, NftRef, NftSet, RuleRef } from '../object/model.ts';
import { baseText, commentLines, elementTexts, setBody, setWord } from './object-text.ts';
import { ruleText, type SetLookup } from './rule-text.ts';

/** The sets that were met, so that the keys and values of their elements can be told by their types. */
export class KnownSets {
  readonly #sets = new Map<string, NftSet>();

  /** From now on this is the set of its name. */
  note(set: NftSet): void {
    this.#sets.set(`${set.family} ${set.table} ${set.name}`, set);
  }

  /** What is known of a set; undefined when it was not met. */
  get(family: NftFamily, table: string, name: string): NftSet | undefined {
    return this.#sets.get(`${family} ${table} ${name}`);
  }

  /** The sets of a table, by name. */
  of(family: NftFamily, table: string): SetLookup {
    return (name) => this.get(family, table, name);
  }
}

/**
 * A change as a line that `nft -f` reads, without its end: `add rule ip nodeplane services ip daddr … goto …`. What `nft`
 * cannot say is in brackets.
 *
 * @param known sets that are there already; one that the change makes is added
 */
export function changeText({ operation, object }: NftChange, known: KnownSets = new KnownSets()): string {
  if (operation === 'flush') {
    if (object.kind !== 'set') return `flush ${object.kind} ${placeText(object)}`;
    return `flush ${setWord(known.get(object.family, object.table, object.name))} ${placeText(object)}`;
  }
  const isRemoval = operation === 'delete' || operation === 'destroy';
  if (object.kind === 'set' && 'key' in object && !isRemoval) known.note(object);
  return `${operation} ${isRemoval ? referenceText(object, known) : objectText(object as NftObject, known)}`;
}

/** An object as it stands behind `add`. */
export function objectText(object: NftObject, known: KnownSets = new KnownSets()): string {
  const place = placeText(object);
  switch (object.kind) {
    case 'table':
      return `table ${place}${braces(commentLines(object.comment))}`;
    case 'chain': {
      const base = object.base ? [baseText(object.base, object.family).slice(0, -1)] : [];
      return `chain ${place}${braces([...base, ...commentLines(object.comment)])}`;
    }
    case 'set':
      return `${setWord(object)} ${place}${braces(setBody(object))}`;
    case 'elements':
      return elementsText(object, known);
    case 'counter': {
      const { packets = 0n, bytes = 0n, comment } = object;
      return `counter ${place}${braces([...commentLines(comment), `packets ${packets} bytes ${bytes}`])}`;
    }
    case 'rule': {
      const { family, table, handle, position, expressions, comment } = object;
      const at = handle ?? position;
      const text = ruleText(expressions, family, known.of(family, table));
      return ['rule', place, ...(at === undefined ? [] : [`handle ${at}`]), text, ...commentLines(comment)]
        .filter((part) => part !== '')
        .join(' ');
    }
    default:
      return object satisfies never;
  }
}

function referenceText(object: NftRef, known: KnownSets): string {
  if (object.kind === 'elements') return elementsText(withoutValues(object), known);
  const place = placeText(object);
  if (object.kind === 'rule') return `rule ${place}${object.handle === undefined ? '' : ` handle ${object.handle}`}`;
  if (object.kind !== 'set') return `${object.kind} ${place}`;
  return `${setWord(known.get(object.family, object.table, object.name))} ${place}`;
}

/** What the kernel looks at when it deletes elements. */
function withoutValues(object: NftElements): NftElements {
  const elements = object.elements.map(({ key, keyEnd, intervalEnd, catchAll }) => ({
    key,
    keyEnd,
    intervalEnd,
    catchAll,
  }));
  const { kind, family, table, set } = object;
  return { kind, family, table, set, elements };
}

function elementsText({ family, table, set, elements }: NftElements, known: KnownSets): string {
  const texts = elementTexts(elements, known.get(family, table, set));
  return `element ${family} ${table} ${set} { ${texts.join(', ')} }`;
}

/** `ip nodeplane services` */
function placeText(object: Exclude<NftRef, NftElements> | RuleRef | NftElements): string {
  switch (object.kind) {
    case 'table':
      return `${object.family} ${object.name}`;
    case 'rule':
      return `${object.family} ${object.table} ${object.chain}`;
    case 'elements':
      return `${object.family} ${object.table} ${object.set}`;
    default:
      return `${object.family} ${object.table} ${object.name}`;
  }
}

function braces(body: readonly string[]): string {
  return body.length === 0 ? '' : ` { ${body.map((line) => `${line};`).join(' ')} }`;
}
