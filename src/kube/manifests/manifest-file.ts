import { isMapping } from '../../core/index.ts';
import { describeValue, type FieldPath, type FieldProblem, formatFieldPath } from '../objects/field-reader.ts';
import { decodeObject } from '../objects/kind.ts';
import { type KubeObject, objectKey } from '../objects/types.ts';
import type { SourceProblem } from '../source.ts';
import type { ManifestKinds } from './manifest-kinds.ts';
import { parseJson, parseYaml } from './manifest-parse.ts';
import {
  doubtfulValues,
  KNOWN_FIELDS,
  misspelt,
  unknownFields,
  withoutConsequences,
  wrongKind,
} from './mistakes/index.ts';

/** Of each sort of mistake, those that are named: a file can have them by the hundred thousand, and each is a line of the log. */
const MOST = 20;
/** Characters of a name or message: that of a parser may quote the whole file. */
const LONGEST_TEXT = 500;

/** An object and where it stands. */
export interface ManifestObject {
  readonly object: KubeObject;
  /** The line (from 1) the object starts at. Found on demand, since most are never asked for. */
  line(): number;
}

/** The content of one manifest file. */
export interface Manifest {
  /** Those that can be used; none of them twice. */
  readonly objects: readonly ManifestObject[];
  /** What cannot be used, and what of the objects is probably not meant (`inForce`); of many the first. */
  readonly problems: readonly SourceProblem[];
  /** All objects that cannot be used, as `Service demo/web` where that much of them can be read. */
  readonly refused: readonly string[];
  /** Objects of kinds that are not read, as `Deployment demo/web`. */
  readonly ignored: readonly string[];
}

/** One value that should be an object: a document, or an item of a list. */
interface Item {
  readonly value: unknown;
  /** Where it is in its document: empty, or `items[3]`. */
  readonly path: FieldPath;
  /** What the list around it says; items of a typed list (`ServiceList`) carry neither kind nor version. */
  readonly kind?: string;
  readonly apiVersion?: unknown;
}

type ItemResult =
  | { readonly object: KubeObject; readonly doubts: readonly FieldProblem[] }
  | { readonly problems: readonly FieldProblem[] }
  | { readonly ignored: string };

/**
 * Reads the text of a manifest file: documents, lists and objects. `fileName` decides between YAML and JSON (`.json`)
 * and stands in the problems. Never throws. Of an object that occurs twice the first counts; one of another kind than `kinds` is
 * not read.
 */
export function readManifest(fileName: string, source: string, kinds: ManifestKinds): Manifest {
  const manifest = new ManifestReader(fileName, kinds);
  // Some editors put a byte order mark in front, which JSON.parse refuses.
  const text = source.replace(/^\uFEFF/, '');
  const parsed = fileName.toLowerCase().endsWith('.json') ? parseJson(text) : parseYaml(text);
  for (const { line, message } of parsed.errors) manifest.takeError(line, message);
  for (const document of parsed.documents) {
    for (const item of itemsOf(document.value, kinds)) {
      manifest.takeItem(item, (field = []) => document.lineOf([...item.path, ...field]));
    }
  }
  return manifest.finish();
}

/** Puts the content of a file together, object by object. */
class ManifestReader {
  readonly #fileName: string;
  readonly #kinds: ManifestKinds;
  readonly #objects: ManifestObject[] = [];
  readonly #refused: string[] = [];
  readonly #ignored: string[] = [];
  /** By key, the one of several that counts. */
  readonly #firsts = new Map<string, ManifestObject>();
  readonly #problems: SourceProblem[] = [];
  readonly #errors = new Bounded(this.#problems);
  readonly #doubles = new Bounded(this.#problems);
  readonly #doubts = new Bounded(this.#problems);

  constructor(fileName: string, kinds: ManifestKinds) {
    this.#fileName = fileName;
    this.#kinds = kinds;
  }

  /** Something that is neither YAML nor JSON. */
  takeError(line: number, message: string): void {
    this.#errors.tell(() => ({
      where: `${this.#fileName}:${line}`,
      message: shortened(`Cannot be parsed: ${message}`),
    }));
  }

  /** @param line where the object stands, or a field of it */
  takeItem(item: Item, line: (field?: FieldPath) => number): void {
    const result = readItem(item, this.#kinds, MOST - Math.min(this.#doubts.count, MOST) + 1);
    if ('ignored' in result) {
      this.#ignored.push(result.ignored);
      return;
    }
    const name = describeObject(item, this.#kinds);
    const describe = (problem: FieldProblem) => sourceProblem(`${this.#fileName}:${line(problem.path)}`, name, problem);
    if ('problems' in result) {
      this.#refused.push(name);
      for (const problem of result.problems) this.#errors.tell(() => describe(problem));
      return;
    }
    const key = objectKey(result.object);
    const first = this.#firsts.get(key);
    if (first) {
      this.#doubles.tell(() => {
        const message = `Already defined in line ${first.line()} of this file, which is in force; remove one of the two`;
        return { where: `${this.#fileName}:${line()}`, object: key, message };
      });
      return;
    }
    const found = { object: result.object, line: () => line() };
    this.#firsts.set(key, found);
    this.#objects.push(found);
    for (const doubt of result.doubts) this.#doubts.tell(() => ({ ...describe(doubt), inForce: true }));
  }

  /** With a word for each sort of mistakes of which there are more than are named. */
  finish(): Manifest {
    const [objects, problems, refused, ignored] = [this.#objects, this.#problems, this.#refused, this.#ignored];
    const where = this.#fileName;
    const { others: errors } = this.#errors;
    if (errors > 0) {
      const message = `There are ${errors} more mistakes than those told; ${refused.length} objects in this file cannot be used`;
      problems.push({ where, message, others: refused.length - namedOf(refused, problems) });
    }
    const { others: doubles } = this.#doubles;
    if (doubles > 0) {
      problems.push({ where, message: `${doubles} more objects are defined twice in this file`, others: doubles });
    }
    if (this.#doubts.others > 0) {
      const message = `There are more fields that are not read, or do nothing, than these ${MOST}`;
      problems.push({ where, message, inForce: true });
    }
    return { objects, problems, refused, ignored };
  }
}

/** How many of these objects a problem names. */
function namedOf(objects: readonly string[], problems: readonly SourceProblem[]): number {
  const named = new Set(problems.map(({ object }) => object));
  return objects.filter((object) => named.has(object)).length;
}

/** Problems of one sort: the first are told, the others only counted, since a line is looked up for each in the whole document. */
class Bounded {
  readonly #problems: SourceProblem[];
  #count = 0;

  /** @param problems where they are told */
  constructor(problems: SourceProblem[]) {
    this.#problems = problems;
  }

  get count(): number {
    return this.#count;
  }

  /** Those that were not told. */
  get others(): number {
    return Math.max(0, this.#count - MOST);
  }

  tell(describe: () => SourceProblem): void {
    this.#count++;
    if (this.#count <= MOST) this.#problems.push(describe());
  }
}

/** The objects of a document: itself, the items of a list, or nothing (an empty document). */
function itemsOf(value: unknown, kinds: ManifestKinds): readonly Item[] {
  if (value === null || value === undefined) return [];
  if (!isMapping(value) || !isListKind(value.kind, kinds)) return [{ value, path: [] }];
  const items = value.items ?? [];
  if (!Array.isArray(items)) return [{ value, path: [] }];
  const kind = value.kind.slice(0, -'List'.length);
  const defaults = kind === '' ? {} : { kind, apiVersion: value.apiVersion };
  return items.map((item, index) => ({ value: item, path: ['items', index], ...defaults }));
}

/** @param most of the unknown fields are named */
function readItem(item: Item, kinds: ManifestKinds, most: number): ItemResult {
  const { value } = item;
  if (!isMapping(value)) return problem([], 'an object with "apiVersion" and "kind"', value);
  const kindName = value.kind ?? item.kind;
  if (typeof kindName !== 'string') {
    return problem(['kind'], 'the kind of an object', kindName, misspelt('kind', value));
  }
  if (isListKind(kindName, kinds)) {
    // A list that was not taken apart by itemsOf.
    return item.path.length > 0
      ? problem(['kind'], 'an object inside a list', kindName)
      : problem(['items'], 'a list', value.items);
  }
  const apiVersion = value.apiVersion ?? item.apiVersion;
  const kind = kinds.get(kindName);
  if (!kind) {
    const message = wrongKind(kindName, apiVersion, kinds);
    return message === undefined
      ? { ignored: describeObject(item, kinds) }
      : { problems: [{ path: ['kind'], message }] };
  }
  if (apiVersion !== kind.apiVersion) {
    const what = `"${kind.apiVersion}" for a ${kindName}`;
    return problem(['apiVersion'], what, apiVersion, misspelt('apiVersion', value));
  }
  const { object, problems } = decodeObject(kind, value);
  const unknown = unknownFields(value, KNOWN_FIELDS[kind.kind], most);
  const found = object ? doubtfulValues(object, value) : problems;
  const all = [...unknown, ...withoutConsequences(found, unknown)];
  return object ? { object, doubts: all } : { problems: all };
}

function problem(path: FieldPath, expected: string, found: unknown, hint = ''): ItemResult {
  return { problems: [{ path, message: `Expected ${expected}, found ${describeValue(found)}${hint}` }] };
}

function sourceProblem(where: string, object: string, { path, message }: FieldProblem): SourceProblem {
  const field = shortened(formatFieldPath(path));
  return {
    where,
    ...(object !== '' && { object: shortened(object) }),
    ...(field !== '' && { field }),
    message: shortened(message),
  };
}

function shortened(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}

/** `List`, or the typed list of a kind that is read. */
function isListKind(kind: unknown, kinds: ManifestKinds): kind is `${string}List` {
  return typeof kind === 'string' && (kind === 'List' || (kind.endsWith('List') && kinds.has(kind.slice(0, -4))));
}

/** `Service demo/web` as far as it is known, else empty; the object need not be valid. */
function describeObject({ value, kind: kindOfList }: Item, kinds: ManifestKinds): string {
  if (!isMapping(value)) return '';
  const kind = typeof value.kind === 'string' ? value.kind : kindOfList;
  const { name, namespace } = isMapping(value.metadata) ? value.metadata : {};
  if (typeof name !== 'string') return kind ?? '';
  const isNamespaced = kind !== undefined && kinds.get(kind)?.namespaced === true;
  const prefix = typeof namespace === 'string' ? `${namespace}/` : isNamespaced ? 'default/' : '';
  return `${kind ?? 'Object'} ${prefix}${name}`;
}
