import type { KubeProxyConfig } from '../../config/index.ts';
import { errorText, NodeplaneError, systemClock } from '../../core/index.ts';
import { type ApiClient, MIGRATION_ANNOTATION, NODE_STATUS, ObjectClient } from '../../kube/index.ts';
import { readCluster } from '../../preflight/index.ts';
import { createLogger } from '../logger.ts';
import { createClient, createSource } from '../object-source.ts';
import { backNote, type MigrationNote, noteText, readNote } from './note.ts';

const PATIENCE_MS = 5000;

/** What the annotation of the Node says. */
export interface SaidOfNode {
  /** Undefined: nothing. */
  readonly note: MigrationNote | undefined;
  /** Why it is not known, in words; undefined: it is. */
  readonly noteUnknown: string | undefined;
}

/** Reads the annotation of this machine's Node. */
export function readAnnotation(config: KubeProxyConfig): Promise<SaidOfNode> {
  return withClient(config, (client) => readWith(config, client));
}

/**
 * Says in the annotation of this machine's Node that nothing of ours is left here: where a kube-proxy does the work again, that the
 * node has gone back to it; otherwise the annotation goes. A Node without the annotation is left as it is.
 *
 * @returns what was done, a sentence
 * @throws ERR_CLEANUP when it cannot be read or written, with what to do instead
 */
export function noteLeft(config: KubeProxyConfig, isLeftToKubeProxy: boolean): Promise<string> {
  return withClient(config, async (client) => {
    const name = config.nodeName;
    const { note, noteUnknown } = await readWith(config, client);
    if (noteUnknown !== undefined) throw cannotWrite(name, noteUnknown);
    if (!note) return `Node "${name}": has no annotation ${MIGRATION_ANNOTATION}`;
    const text = isLeftToKubeProxy ? noteText(backNote(note, systemClock.wallTime())) : null;
    try {
      const nodes = new ObjectClient({ client: client as ApiClient, resource: NODE_STATUS, fieldManager: 'nodeplane' });
      const patch = { metadata: { annotations: { [MIGRATION_ANNOTATION]: text } } };
      await nodes.strategicPatch({ name }, patch, AbortSignal.timeout(PATIENCE_MS));
    } catch (error) {
      throw cannotWrite(name, errorText(error), error);
    }
    return `Node "${name}": annotation ${MIGRATION_ANNOTATION} ${text === null ? 'removed' : 'says that it has gone back'}`;
  });
}

function cannotWrite(name: string, reason: string, cause?: unknown): NodeplaneError {
  return new NodeplaneError(
    'ERR_CLEANUP',
    `Cannot bring annotation ${MIGRATION_ANNOTATION} of Node "${name}" up to date: ${reason}; all else is done. Try again, or: kubectl annotate node ${name} ${MIGRATION_ANNOTATION}-`,
    { facts: { node: name }, cause },
  );
}

/** The client is an error where none can be made of what the configuration names. */
async function withClient<T>(
  config: KubeProxyConfig,
  work: (client: ApiClient | Error | undefined) => Promise<T>,
): Promise<T> {
  const options = { config, clock: systemClock, observe: () => {}, userAgent: 'nodeplane-migration' };
  const client = await createClient(options).catch((error: Error) => error);
  try {
    return await work(client);
  } finally {
    if (!(client instanceof Error)) client?.close();
  }
}

async function readWith(config: KubeProxyConfig, client: ApiClient | Error | undefined): Promise<SaidOfNode> {
  const usable = client instanceof Error ? undefined : client;
  const logger = createLogger({ ...config.logging, level: 'error' });
  const cluster = readCluster({
    config,
    client,
    source: (resources) =>
      createSource({ config, clock: systemClock, logger, observe: () => {}, client: usable, resources }).source,
    patienceMs: PATIENCE_MS,
  });
  try {
    if (cluster.origin.kind === 'none') return { note: undefined, noteUnknown: cluster.origin.reason };
    const { node } = await cluster.objects();
    if (!node) return { note: undefined, noteUnknown: `there is no Node "${config.nodeName}"` };
    return { note: readNote(node.metadata.annotations?.[MIGRATION_ANNOTATION]), noteUnknown: undefined };
  } catch (error) {
    return { note: undefined, noteUnknown: errorText(error) };
  }
}
