import type { KubeProxyConfig } from '../../config/index.ts';
import { plainText } from '../../core/index.ts';
import { needCapability } from '../../sys/index.ts';
import { type Advice, advise } from './advice.ts';
import type { FoundOnNode } from './found.ts';
import { lookAround } from './look-around.ts';
import type { MigrationNote } from './note.ts';
import { readAnnotation } from './note-of-node.ts';

/** Where this node stands on its way from another network. */
export interface MigrationReport extends Advice, FoundOnNode {
  readonly node: string;
  /** What the annotation of the Node says; undefined: nothing. */
  readonly note: MigrationNote | undefined;
  /** Why the annotation is not known, in words; undefined: it is. */
  readonly noteUnknown: string | undefined;
}

/**
 * Looks at this node and its Node object. Changes nothing; rejects when the kernel cannot be read, with ERR_CONFIG
 * without CAP_NET_ADMIN.
 */
export async function migrationReport(config: KubeProxyConfig): Promise<MigrationReport> {
  needCapability('NET_ADMIN', 'read packet rules');
  const [found, said] = await Promise.all([lookAround(config), readAnnotation(config)]);
  return { node: config.nodeName, ...found, ...said, ...advise(found, said.note) };
}

/** The report for people. */
export function migrationText(report: MigrationReport): string {
  const { node, standing, theirs, ours, unread, note, noteUnknown, next, back } = report;
  const annotation = note
    ? `${note.step} since ${note.since}, from ${note.from.join(', ')}`
    : noteUnknown === undefined
      ? 'none'
      : `not known: ${noteUnknown}`;
  const found = [
    ...[...ours, ...theirs].map(({ name, sign }) => `${name} (${sign})`),
    ...unread.map((what) => `not known: ${what}`),
  ];
  const lines = [
    ['Node', node],
    ['State', standing],
    ...section('Found', found.length > 0 ? found : ['no rules of a proxy']),
    ['Annotation', annotation],
    ...section('Next', next),
    ...section('Back', back),
  ];
  return lines.map(([title, text]) => `${plainText(`${title!.padEnd(12)}${text}`)}\n`).join('');
}

/** The title stands before the first line alone. */
function section(title: string, texts: readonly string[]): string[][] {
  return texts.map((text, index) => [index === 0 ? title : '', text]);
}
