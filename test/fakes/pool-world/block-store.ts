import type { PodCIDRBlock } from '../../../src/kube/index.ts';
import type { BlockOutcome, BlockRequest } from '../../../src/pools/decide/index.ts';
import { blockName } from '../../../src/pools/index.ts';

/** A change, as watches tell it; `block` undefined: it was deleted. */
export type BlockChange = { readonly name: string; readonly block: PodCIDRBlock | undefined };
export type NodeChange = { readonly name: string; readonly uid: string | undefined };

/** Who sends a request. */
export interface Sender {
  readonly node: string;
  readonly session: string;
}

/** The server's side of the requests of decisions, with its compare-and-swap; what is in it never repeats a version or UID. */
export class BlockStore {
  readonly blocks = new Map<string, PodCIDRBlock>();
  readonly nodes = new Map<string, string>();
  readonly blockLog: BlockChange[] = [];
  readonly nodeLog: NodeChange[] = [];
  #version = 0;

  setNode(name: string, isThere: boolean): void {
    const uid = isThere ? `node-${++this.#version}` : undefined;
    if (uid === undefined) this.nodes.delete(name);
    else this.nodes.set(name, uid);
    this.nodeLog.push({ name, uid });
  }

  answer(request: BlockRequest, sender: Sender): BlockOutcome {
    switch (request.kind) {
      case 'lookAtNode':
        return { kind: 'done', uid: this.nodes.get(sender.node) };
      case 'lookForNode':
        return { kind: 'done', uid: this.nodes.get(request.block.spec.node) };
      case 'claim': {
        const { cidr, nodeUID } = request;
        const name = blockName(cidr);
        if (this.blocks.has(name)) return { kind: 'beaten' };
        this.#put(name, `block-${++this.#version}`, {
          cidr,
          nodeUID,
          node: sender.node,
          holder: sender.session,
          state: 'pending',
        });
        return { kind: 'done' };
      }
      case 'confirm':
        return this.#change(request.block, { state: 'confirmed', holder: sender.session });
      case 'renew':
        return this.#change(request.block, {
          holder: sender.session,
          ...(request.nodeUID !== undefined && { nodeUID: request.nodeUID }),
        });
      case 'release':
        return this.#change(request.block, { state: 'releasing' });
      case 'remove': {
        const { name } = request.block.metadata;
        if (!this.#isCurrent(request.block)) return { kind: 'beaten' };
        this.blocks.delete(name);
        this.blockLog.push({ name, block: undefined });
        return { kind: 'done' };
      }
    }
  }

  #change(seen: PodCIDRBlock, fields: Partial<PodCIDRBlock['spec']>): BlockOutcome {
    if (!this.#isCurrent(seen)) return { kind: 'beaten' };
    const { metadata, spec } = this.blocks.get(seen.metadata.name)!;
    this.#put(metadata.name, metadata.uid!, { ...spec, ...fields });
    return { kind: 'done' };
  }

  #isCurrent({ metadata }: PodCIDRBlock): boolean {
    const live = this.blocks.get(metadata.name)?.metadata;
    return live?.uid === metadata.uid && live?.resourceVersion === metadata.resourceVersion;
  }

  #put(name: string, uid: string, spec: PodCIDRBlock['spec']): void {
    const metadata = { name, namespace: '', uid, resourceVersion: String(++this.#version) };
    const block: PodCIDRBlock = { kind: 'PodCIDRBlock', metadata, spec };
    this.blocks.set(name, block);
    this.blockLog.push({ name, block });
  }
}
