import { Document, isScalar, type Node, parseAllDocuments, parseDocument, Scalar, visit } from 'yaml';
import type { Json } from '../values/value-type.ts';

/**
 * Kubernetes reads YAML 1.1 (`yes` and `on` are booleans, `010` is eight), but has no dates and no numbers in base 60:
 * those stay text.
 */
const DIALECT = {
  version: '1.1',
  customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || !isTimeTag(tag)),
} as const satisfies NonNullable<Parameters<typeof parseDocument>[1]>;

function isTimeTag(tag: { readonly tag: string; readonly format?: string }): boolean {
  return tag.tag === 'tag:yaml.org,2002:timestamp' || tag.format === 'TIME';
}

/** What one YAML (or JSON) text says. */
export interface YamlContent {
  /** The first document as plain data; of a key that is there twice, the later value. */
  readonly data: unknown;
  /** Keys that are there twice, with their line: `key "mode" already set in map (line 7)`. */
  readonly duplicates: readonly string[];
  /** Documents after the first, which nobody reads. */
  readonly furtherDocuments: number;
}

/** Reads YAML. Returns the reason as text, with line and column, if it is none. */
export function readYaml(source: string): YamlContent | string {
  const [document, ...further] = parseAllDocuments(source, { ...DIALECT, uniqueKeys: false, prettyErrors: true });
  if (!document) return { data: null, duplicates: [], furtherDocuments: 0 };
  const [error] = document.errors;
  if (error) return error.message.split('\n')[0]!.replace(/:$/, '');
  const lineOf = (node: Node): number => source.slice(0, node.range?.[0] ?? 0).split('\n').length;
  try {
    return { data: document.toJS(), duplicates: duplicateKeys(document, lineOf), furtherDocuments: further.length };
  } catch (cause) {
    // Aliases that name nothing, or so many that they would fill the memory.
    return cause instanceof Error ? cause.message : String(cause);
  }
}

function duplicateKeys(document: Document, lineOf: (node: Node) => number): string[] {
  const found: string[] = [];
  visit(document, {
    Map(_, map) {
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) found.push(`key "${key.value}" already set in map (line ${lineOf(key)})`);
        seen.add(key.value);
      }
    },
  });
  return found;
}

/** Writes YAML as kube-proxy does: keys in alphabetical order, lists not indented, single quotes only where quotes are needed. */
export function writeYaml(value: Json): string {
  const document = new Document(value, { ...DIALECT, sortMapEntries: true });
  visit(document, {
    Scalar(_, scalar) {
      if (typeof scalar.value === 'string' && readsAsAnotherType(scalar.value)) scalar.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return document.toString({ singleQuote: true, indentSeq: false, lineWidth: 0, directives: false });
}

/** Text that without quotes would be a number, a boolean or null. Go's writer puts it in double quotes. */
function readsAsAnotherType(line: string): boolean {
  const { contents, errors } = parseDocument(line, DIALECT);
  return errors.length === 0 && (contents === null || (isScalar(contents) && typeof contents.value !== 'string'));
}
