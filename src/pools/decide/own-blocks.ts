import { IP_FAMILIES, type IpFamily } from '../../core/index.ts';
import { isConfirmed } from '../block-view.ts';
import { addressesPerBlock } from '../pool.ts';
import type { TakenBlocks } from '../taken-blocks.ts';
import { type BlockRequest, uidOf } from './block-request.ts';
import { keepEntries, type Memory } from './memory.ts';
import { judgeOwn, type OwnBlock } from './own-block.ts';
import type { PoolProblem, Situation, UsableBlock } from './situation.ts';

/** Another block is taken when fewer addresses than this part of one are free: when the last one is used to 80 %. */
const LOW_WATER = 0.2;
/** A block is given back only if the others have so much more than that. */
const HIGH_WATER = 2 * LOW_WATER;
/** Of one family, on one node: 4,096 addresses in blocks of the default size. What wants more counts wrong. */
const MOST_OWN_BLOCKS = 64;

/** What this node does about its own blocks. */
export interface OwnDecision {
  readonly usable: readonly UsableBlock[];
  /** In the order of their urgency. */
  readonly requests: readonly BlockRequest[];
  /** What people have to know; no two the same. */
  readonly problems: readonly PoolProblem[];
  readonly draining: ReadonlyMap<string, number>;
}

/** What this node does about its own blocks. Pure. */
export function decideOwn(s: Situation, memory: Memory): OwnDecision {
  const judged = s.view.own().flatMap((block) => judgeOwn(block, s, memory) ?? []);
  const decision = new FamilyDecisions(s, memory, judged);
  for (const family of IP_FAMILIES) decision.decide(family);
  return decision.result();
}

/** Which blocks are claimed and given back, family by family. */
class FamilyDecisions {
  readonly #s: Situation;
  readonly #memory: Memory;
  readonly #judged: readonly OwnBlock[];
  readonly #claims: BlockRequest[] = [];
  readonly #problems: PoolProblem[] = [];
  #draining: ReadonlyMap<string, number>;

  constructor(s: Situation, memory: Memory, judged: readonly OwnBlock[]) {
    this.#s = s;
    this.#memory = memory;
    this.#judged = judged;
    // What has got a pod after all, or is gone, does not drain.
    const empty = new Set(judged.filter(({ used }) => used === 0).map(({ block }) => uidOf(block)));
    this.#draining = keepEntries(memory.draining, (uid) => empty.has(uid));
    for (const { block, isInPool, used, request } of judged) {
      if (!isInPool && used === 0 && !request && isConfirmed(block.spec)) this.#drain(block);
    }
  }

  decide(family: IpFamily): void {
    const pools = this.#s.view.pools.filter(({ pool }) => pool.family === family);
    const [first] = pools;
    if (!first) return;
    const perBlock = addressesPerBlock(first.pool);
    const inPool = this.#judged.filter((own) => own.isInPool && isFamily(own, family));
    const usable = inPool.filter(({ until }) => until !== undefined);
    const given = usable.filter((own) => !this.#draining.has(uidOf(own.block)));
    const free = given.reduce((sum, own) => sum + own.free, 0);
    if (free >= LOW_WATER * perBlock) {
      const spare = given.find((own) => own.used === 0 && free - own.free >= HIGH_WATER * perBlock);
      if (spare) this.#drain(spare.block);
    } else if (given.length < usable.length) {
      for (const { block } of usable) this.#draining = keepEntries(this.#draining, (uid) => uid !== uidOf(block));
    } else if (usable.length === inPool.length && !this.#isAwaited(family)) this.#claim(family, pools, inPool.length);
  }

  result(): OwnDecision {
    const { emptyMs } = this.#s.times;
    const releases = this.#judged.flatMap(({ block }): readonly BlockRequest[] => {
      const since = this.#draining.get(uidOf(block));
      return since !== undefined && this.#s.now >= since + emptyMs ? [{ kind: 'release', block }] : [];
    });
    const usable = this.#judged.flatMap(({ block, until }): readonly UsableBlock[] => {
      return until === undefined || this.#draining.has(uidOf(block)) ? [] : [{ cidr: block.spec.cidr, until }];
    });
    const requests = [...this.#judged.flatMap(({ request }) => request ?? []), ...this.#claims, ...releases];
    return { usable, requests, problems: [...this.#problems, ...this.#closed()], draining: this.#draining };
  }

  #drain(block: OwnBlock['block']): void {
    const uid = uidOf(block);
    if (!this.#draining.has(uid)) this.#draining = new Map(this.#draining).set(uid, this.#s.now);
  }

  #isAwaited(family: IpFamily): boolean {
    const awaited = this.#memory.awaited.get(family);
    return awaited !== undefined && this.#s.now < awaited.until && !this.#s.view.block(awaited.name);
  }

  #claim(family: IpFamily, pools: readonly TakenBlocks[], present: number): void {
    const { node, now, view, isOfServices } = this.#s;
    const { looked, refused } = this.#memory;
    if (!looked) return;
    if (looked.uid === undefined) {
      const message = `Node "${node}" does not exist: no ${family} block of pod addresses can be claimed for it`;
      this.#problems.push({ code: 'ERR_POOL', message });
      return;
    }
    if (present >= MOST_OWN_BLOCKS) {
      const message = `Node "${node}" has ${present} ${family} blocks of pod addresses, and gets no more`;
      this.#problems.push({ code: 'ERR_POOL_EXHAUSTED', message });
      return;
    }
    let ofServices = 0;
    const isRefused = (cidr: string) => {
      const isInTheWay = isOfServices?.(cidr) ?? false;
      if (isInTheWay) ofServices++;
      return isInTheWay || now < (refused.get(cidr) ?? Number.NEGATIVE_INFINITY);
    };
    for (const taken of pools) {
      const cidr = taken.findFree(node, isRefused);
      if (cidr === undefined) continue;
      this.#claims.push({ kind: 'claim', family, cidr, pool: taken.pool.name, nodeUID: looked.uid });
      return;
    }
    const sizes = pools.map(({ pool }) => `${pool.name} (${pool.blockCount} blocks of /${pool.blockSize})`).join(', ');
    const others = ofServices > 0 ? `, and ${ofServices} are in the Service range` : '';
    const message = `No ${family} block of pod addresses is free for node "${node}" in ${sizes}: ${view.owners} nodes have blocks${others}; add a pool, or delete the Nodes of machines that are gone`;
    this.#problems.push({ code: 'ERR_POOL_EXHAUSTED', message });
  }

  /** Blocks that no addresses can be given out of although they are, or were, ours. */
  #closed(): readonly PoolProblem[] {
    const { node, session } = this.#s;
    return this.#judged.flatMap(({ block, used, until, isInPool }): readonly PoolProblem[] => {
      const { cidr, state, holder } = block.spec;
      if (state === 'releasing' && used > 0) {
        const message = `Block ${cidr} was taken from node "${node}", which was held to be gone, while ${used} of its addresses are in use: drain the node`;
        return [{ code: 'ERR_POOL', message }];
      }
      if (!isInPool || until !== undefined || holder !== session || !isConfirmed(block.spec)) return [];
      const message = `No addresses are given out of block ${cidr}: for too long the API server has not said that Node "${node}" exists, and others may take the block`;
      return [{ code: 'ERR_POOL', message }];
    });
  }
}

function isFamily({ block }: OwnBlock, family: IpFamily): boolean {
  return block.spec.cidr.includes(':') === (family === 'IPv6');
}
