import {
  describeValue,
  type FieldPath,
  type FieldProblem,
  formatFieldPath,
  isMapping,
} from '../objects/field-reader.ts';
import { decodeObject } from '../objects/kind.ts';
import { type KubeObject, objectKey } from '../objects/types.ts';
import type { SourceProblem } from '../source.ts';
import type { ManifestKinds } from './manifest-kinds.ts';
import { parseJson, parseYaml } from './manifest-parse.ts';

/** Objects defined twice that are named. A line is looked up for each, through the whole document. */
const MOST_DOUBLES = 20;

/** An object and where it stands. */
export interface ManifestObject {
  readonly object: KubeObject;
  /** The line (from 1) the object starts at. Found on demand, since most are never asked for. */
  line(): number;
}

/** The content of one manifest file. It can be used only if there are no problems. */
export interface Manifest {
  readonly objects: readonly ManifestObject[];
  readonly problems: readonly SourceProblem[];
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
  | { readonly object: KubeObject }
  | { readonly problems: readonly FieldProblem[] }
  | { readonly ignored: string };

/**
 * Reads the text of a manifest file: documents, lists and objects. `fileName` decides between YAML and JSON (`.json`)
 * and stands in the problems. Never throws. An object that occurs twice is a problem; one of another kind than `kinds` is not read.
 */
export function readManifest(fileName: string, source: string, kinds: ManifestKinds): Manifest {
  const objects: ManifestObject[] = [];
  const problems: SourceProblem[] = [];
  const ignored: string[] = [];
  const firsts = new Map<string, ManifestObject>();
  let doubles = 0;

  // Some editors put a byte order mark in front, which JSON.parse refuses.
  const text = source.replace(/^\uFEFF/, '');
  const parsed = fileName.endsWith('.json') ? parseJson(text) : parseYaml(text);
  for (const { line, message } of parsed.errors) {
    problems.push({ where: `${fileName}:${line}`, message: `Cannot be parsed: ${message}` });
  }
  for (const document of parsed.documents) {
    for (const item of itemsOf(document.value, kinds)) {
      const line = (field: FieldPath = []) => document.lineOf([...item.path, ...field]);
      const result = readItem(item, kinds);
      if ('ignored' in result) {
        ignored.push(result.ignored);
      } else if ('problems' in result) {
        const name = describeObject(item, kinds);
        for (const problem of result.problems) {
          problems.push(sourceProblem(`${fileName}:${line(problem.path)}`, name, problem));
        }
      } else {
        const key = objectKey(result.object);
        const first = firsts.get(key);
        const found = { object: result.object, line: () => line() };
        if (first) {
          doubles++;
          if (doubles > MOST_DOUBLES) continue;
          const message = `Already defined in line ${first.line()} of this file; remove one of the two`;
          problems.push({ where: `${fileName}:${line()}`, object: key, message });
        } else {
          firsts.set(key, found);
          objects.push(found);
        }
      }
    }
  }
  if (doubles > MOST_DOUBLES) {
    problems.push({
      where: fileName,
      message: `${doubles - MOST_DOUBLES} more objects are defined twice in this file`,
    });
  }
  return { objects, problems, ignored };
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

function readItem(item: Item, kinds: ManifestKinds): ItemResult {
  const { value } = item;
  if (!isMapping(value)) return problem([], 'an object with "apiVersion" and "kind"', value);
  const kindName = value.kind ?? item.kind;
  if (typeof kindName !== 'string') return problem(['kind'], 'the kind of an object', kindName);
  if (isListKind(kindName, kinds)) {
    // A list that was not taken apart by itemsOf.
    return item.path.length > 0
      ? problem(['kind'], 'an object inside a list', kindName)
      : problem(['items'], 'a list', value.items);
  }
  const kind = kinds.get(kindName);
  if (!kind) return { ignored: describeObject(item, kinds) };
  const apiVersion = value.apiVersion ?? item.apiVersion;
  if (apiVersion !== kind.apiVersion) {
    return problem(['apiVersion'], `"${kind.apiVersion}" for a ${kindName}`, apiVersion);
  }
  return decodeObject(kind, value);
}

function problem(path: FieldPath, expected: string, found: unknown): ItemResult {
  return { problems: [{ path, message: `Expected ${expected}, found ${describeValue(found)}` }] };
}

function sourceProblem(where: string, object: string, { path, message }: FieldProblem): SourceProblem {
  const field = formatFieldPath(path);
  return { where, ...(object !== '' && { object }), ...(field !== '' && { field }), message };
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
