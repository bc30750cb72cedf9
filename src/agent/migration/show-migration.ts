import type { KubeProxyConfig } from '../../config/index.ts';
import { errorText, plainText, systemClock } from '../../core/index.ts';
import { MIGRATION_ANNOTATION } from '../../kube/index.ts';
import { readCluster } from '../../preflight/index.ts';
import { createLogger } from '../logger.ts';
import { createClient, createSource } from '../object-source.ts';
import { type Advice, advise } from './advice.ts';
import type { FoundOnNode } from './found.ts';
import { lookAround } from './look-around.ts';
import { type MigrationNote, readNote } from './note.ts';

/** Where this node stands on its way from another network. */
export interface MigrationReport extends Advice, FoundOnNode {
  readonly node: string;
  /** What the annotation of the Node says; undefined: nothing. */
  readonly note: MigrationNote | undefined;
  /** Why the annotation is not known, in words; undefined: it is. */
  readonly noteUnknown: string | undefined;
}

const PATIENCE_MS = 5000;

/** Looks at this node and its Node object. Changes nothing; rejects when the kernel cannot be read. */
export async function migrationReport(config: KubeProxyConfig): Promise<MigrationReport> {
  const [found, said] = await Promise.all([lookAround(config), readAnnotation(config)]);
  return { node: config.nodeName, ...found, ...said, ...advise(found, said.note) };
}

async function readAnnotation(config: KubeProxyConfig): Promise<Pick<MigrationReport, 'note' | 'noteUnknown'>> {
  const observe = () => {};
  const clock = systemClock;
  const client = await createClient({ config, clock, observe, userAgent: 'nodeplane-migration' }).catch(
    (error: Error) => error,
  );
  const usable = client instanceof Error ? undefined : client;
  const logger = createLogger({ ...config.logging, level: 'error' });
  const cluster = readCluster({
    config,
    client,
    source: (resources) => createSource({ config, clock, logger, observe, client: usable, resources }).source,
    patienceMs: PATIENCE_MS,
  });
  try {
    if (cluster.origin.kind === 'none') return { note: undefined, noteUnknown: cluster.origin.reason };
    const { node } = await cluster.objects();
    if (!node) return { note: undefined, noteUnknown: `there is no Node "${config.nodeName}"` };
    return { note: readNote(node.metadata.annotations?.[MIGRATION_ANNOTATION]), noteUnknown: undefined };
  } catch (error) {
    return { note: undefined, noteUnknown: errorText(error) };
  } finally {
    usable?.close();
  }
}

/** The report for people. */
export function migrationText(report: MigrationReport): string {
  const { node, standing, theirs, ours, note, noteUnknown, next, back } = report;
  const annotation = note
    ? `${note.step} since ${note.since}, from ${note.from.join(', ')}`
    : noteUnknown === undefined
      ? 'none'
      : `not known: ${noteUnknown}`;
  const found = [...ours, ...theirs].map(({ name, sign }) => `${name} (${sign})`);
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
