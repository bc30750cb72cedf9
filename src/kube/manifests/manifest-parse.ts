import {
  type Document,
  isAlias,
  isDocument,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
} from 'yaml';
import { errorText } from '../../core/index.ts';
import type { FieldPath } from '../objects/field-reader.ts';
import { faultOfDocument } from './yaml-document.ts';

/** Characters of YAML that are read: seconds of work, and some hundred MB of memory meanwhile. JSON costs a hundredth. */
const LONGEST_YAML = 4 * 1024 * 1024;

/** One document of a manifest file as plain data. */
export interface ManifestDocument {
  readonly value: unknown;
  /** The line (from 1) of a field, or of the nearest thing around it that exists. */
  lineOf(path: FieldPath): number;
}

/** The YAML documents of a file, and what is no YAML. */
export interface ParsedManifest {
  readonly documents: readonly ManifestDocument[];
  readonly errors: readonly { readonly line: number; readonly message: string }[];
}

const OPTIONS = {
  prettyErrors: false,
  /** Reads `<<: *anchor`, which kubectl accepts though it is not part of YAML 1.2. */
  merge: true,
  /** That is looked for by `faultOfDocument`. */
  uniqueKeys: false,
  logLevel: 'error',
} as const;

/**
 * Parses YAML of any number of documents. Never throws: whatever cannot be read is an error with its line; a document
 * with an error is not among the documents.
 */
export function parseYaml(source: string): ParsedManifest {
  const lines = new LineCounter();
  const documents: ManifestDocument[] = [];
  const errors: { line: number; message: string }[] = [];
  if (source.length > LONGEST_YAML) {
    const message = `it has ${source.length} characters of YAML, at most ${LONGEST_YAML} are read; split it, or write JSON`;
    return { documents, errors: [{ line: 1, message }] };
  }
  try {
    for (const document of parseAllDocuments(source, { ...OPTIONS, lineCounter: lines })) {
      // Only the first error: the following ones are mostly its consequences.
      const error = document.errors[0];
      if (error) errors.push({ line: lines.linePos(error.pos[0]).line, message: error.message });
      else readDocument(document, lines, documents, errors);
    }
  } catch (error) {
    // Nesting deep enough to exhaust the stack ends up here.
    errors.push({ line: 1, message: errorText(error) });
  }
  return { documents, errors };
}

function readDocument(
  document: Document.Parsed,
  lines: LineCounter,
  documents: ManifestDocument[],
  errors: { line: number; message: string }[],
): void {
  const lineOf = (path: FieldPath) => lineOfField(document, path, lines);
  try {
    const fault = faultOfDocument(document);
    if (fault) {
      errors.push({ line: lines.linePos(fault.offset).line, message: fault.message });
      return;
    }
    // Without a limit on aliases: generated files share repeated parts that way, thousands of times. Aliases become
    // references, not copies, and decoding follows them only as deep as the objects' own fields go.
    documents.push({ value: document.toJS({ maxAliasCount: -1 }), lineOf });
  } catch (error) {
    // An alias without its anchor.
    errors.push({ line: lineOf([]), message: errorText(error) });
  }
}

/**
 * Parses JSON. The `yaml` package reads JSON too, but 100 times slower than `JSON.parse`; it is asked only when
 * a line is wanted or `JSON.parse` refuses the text (its message then has a line; and what is YAML after all is read).
 */
export function parseJson(source: string): ParsedManifest {
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch (error) {
    if (source.length > LONGEST_YAML) return { documents: [], errors: [{ line: 1, message: errorText(error) }] };
    return parseYaml(source);
  }
  let located: ManifestDocument | undefined;
  const lineOf = (path: FieldPath) => {
    located ??= parseYaml(source).documents[0];
    return located?.lineOf(path) ?? 1;
  };
  return { documents: [{ value, lineOf }], errors: [] };
}

function lineOfField(document: Document.Parsed, path: FieldPath, lines: LineCounter): number {
  let node: unknown = document.contents;
  let offset = startOf(document.contents) ?? startOf(document) ?? 0;
  for (const key of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key));
      if (!pair) break;
      offset = startOf(pair.key) ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof key === 'number') {
      node = node.items[key];
      offset = startOf(node) ?? offset;
    } else {
      break;
    }
  }
  return lines.linePos(offset).line;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) || isDocument(node) ? node.range?.[0] : undefined;
}
