import { type Clock, errorText, NodeplaneError } from '../core/index.ts';
import {
  type ApiClient,
  ApiStatusError,
  isRefused,
  ObjectClient,
  type ObjectName,
  type ObjectResource,
  type PodCIDRBlock,
} from '../kube/index.ts';
import { blockName, NODE_HASH_LABEL, nodeHash } from './block-name.ts';
import type { BlockOutcome, BlockRequest } from './decide/index.ts';

const BLOCKS: ObjectResource = {
  name: 'podcidrblocks',
  group: 'nodeplane.io',
  version: 'v1alpha1',
  kind: 'PodCIDRBlock',
  namespaced: false,
};
const NODES: ObjectResource = { name: 'nodes', group: '', version: 'v1', kind: 'Node', namespaced: false };

export interface BlockWriterOptions {
  readonly client: ApiClient;
  /** The name of this node. */
  readonly node: string;
  /** This process of the agent, as the `holder` of its blocks. */
  readonly session: string;
  readonly clock: Clock;
}

/** A request's outcome, and in words why it failed. */
export type Performed = { readonly outcome: BlockOutcome; readonly error?: NodeplaneError };

/** Sends the requests of decisions to the API server: each is one HTTP request, and no more. */
export class BlockWriter {
  readonly #options: BlockWriterOptions;
  readonly #blocks: ObjectClient;
  readonly #nodes: ObjectClient;

  constructor(options: BlockWriterOptions) {
    this.#options = options;
    const { client } = options;
    this.#blocks = new ObjectClient({ client, resource: BLOCKS, fieldManager: 'nodeplane' });
    this.#nodes = new ObjectClient({ client, resource: NODES, fieldManager: 'nodeplane' });
  }

  /** Never rejects. */
  async perform(request: BlockRequest, signal: AbortSignal): Promise<Performed> {
    try {
      return { outcome: await this.#send(request, signal) };
    } catch (error) {
      // Also a block that was to be changed and is gone: the view will show it.
      const isChange = 'block' in request && request.kind !== 'lookForNode';
      if (isRefused(error, 'conflict', 'alreadyExists') || (isChange && isRefused(error, 'notFound'))) {
        return { outcome: { kind: 'beaten' } };
      }
      const retryAfterMs = error instanceof ApiStatusError ? (error.retryAfterMs ?? 0) : 0;
      return { outcome: { kind: 'failed', retryAfterMs }, error: inWords(request, error) };
    }
  }

  async #send(request: BlockRequest, signal: AbortSignal): Promise<BlockOutcome> {
    const { node, session } = this.#options;
    switch (request.kind) {
      case 'lookAtNode':
        return { kind: 'done', uid: await this.#nodeUid(node, signal) };
      case 'lookForNode':
        return { kind: 'done', uid: await this.#nodeUid(request.block.spec.node, signal) };
      case 'claim':
        await this.#create(request, signal);
        break;
      case 'confirm':
        await this.#patch(request.block, { state: 'confirmed', holder: session, renewedAt: this.#time() }, signal);
        break;
      case 'renew': {
        const { block, nodeUID } = request;
        const forNode = nodeUID === undefined ? {} : { nodeUID };
        await this.#patch(block, { ...forNode, holder: session, renewedAt: this.#time() }, signal);
        break;
      }
      case 'release':
        await this.#patch(request.block, { state: 'releasing' }, signal);
        break;
      case 'remove':
        await this.#blocks.delete(targetOf(request.block), signal);
        break;
    }
    return { kind: 'done' };
  }

  async #create(
    { cidr, pool, nodeUID }: Extract<BlockRequest, { readonly kind: 'claim' }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { node, session } = this.#options;
    const now = this.#time();
    const metadata = { name: blockName(cidr), labels: { [NODE_HASH_LABEL]: nodeHash(node) } };
    const spec = { cidr, pool, node, nodeUID, holder: session, state: 'pending', claimedAt: now, renewedAt: now };
    await this.#blocks.create({ metadata, spec }, signal);
  }

  async #patch(block: PodCIDRBlock, spec: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
    await this.#blocks.mergePatch(targetOf(block), { spec }, signal);
  }

  /** Undefined: the server itself says that there is none. Whatever stands in between may answer 404 to anything. */
  async #nodeUid(name: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      return (await this.#nodes.get({ name }, signal)).metadata.uid;
    } catch (error) {
      const isGone = isRefused(error, 'notFound') && (error as ApiStatusError).reason === 'NotFound';
      if (!isGone) throw error;
      return undefined;
    }
  }

  /** For people: nothing is decided by it. */
  #time(): string {
    return new Date(this.#options.clock.wallTime()).toISOString();
  }
}

/** The object in the version that the view shows: nothing else is changed or deleted. */
function targetOf({ metadata }: PodCIDRBlock): ObjectName & { readonly uid: string; readonly resourceVersion: string } {
  const { name, uid, resourceVersion } = metadata;
  if (uid === undefined || resourceVersion === undefined) {
    throw new NodeplaneError('ERR_POOL', `Cannot write PodCIDRBlock "${name}": it did not come from an API server`);
  }
  return { name, uid, resourceVersion };
}

function inWords(request: BlockRequest, error: unknown): NodeplaneError {
  if (request.kind === 'claim' && isRefused(error, 'notFound')) {
    const message = `Cannot claim block ${request.cidr} of pod addresses: the API server does not know PodCIDRBlocks; install them with "kubectl apply -f deploy/crds/podcidrblocks.yaml"`;
    return new NodeplaneError('ERR_POOL', message, { cause: error });
  }
  return new NodeplaneError('ERR_POOL', `Cannot ${WORDS[request.kind]}${blockOf(request)}: ${errorText(error)}`);
}

const WORDS = {
  lookAtNode: 'see whether this node’s Node is there',
  claim: 'claim block ',
  confirm: 'confirm block ',
  renew: 'renew block ',
  release: 'give back block ',
  remove: 'delete block ',
  lookForNode: 'see whether there is still the node of block ',
} as const satisfies Record<BlockRequest['kind'], string>;

function blockOf(request: BlockRequest): string {
  if ('cidr' in request) return request.cidr;
  return 'block' in request ? request.block.spec.cidr : '';
}
