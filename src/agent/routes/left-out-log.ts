import type { IpFamily } from '../../core/index.ts';
import type { Logger } from '../logger.ts';

/** How many Nodes one sync writes a line about each: somebody should be able to read them. */
const NAMED = 20;
/** Different reasons that are written where Nodes are summed up. */
const REASONS = 3;

interface Change {
  readonly node: string;
  /** Undefined: it is not left out any more. */
  readonly reason: string | undefined;
}

/**
 * Writes which Nodes are left out, and which are not any more: after each sync a line for each where they are few, one for all
 * where a cause they share, such as a cable that was pulled, makes them many.
 */
export class LeftOutLog {
  readonly #logger: Logger;
  readonly #family: IpFamily;
  #changes: Change[] = [];

  constructor(logger: Logger, family: IpFamily) {
    this.#logger = logger;
    this.#family = family;
  }

  /** Keeps it until the sync is done. */
  add(node: string, reason: string | undefined): void {
    this.#changes.push({ node, reason });
  }

  /** The sync is done. */
  write(): void {
    const changes = this.#changes;
    this.#changes = [];
    const family = this.#family;
    const few = changes.length <= NAMED;
    for (const { node, reason } of few ? changes : []) {
      if (reason === undefined) this.#logger.info({ family, node }, 'The Node is not left out any more');
      else
        this.#logger.warn({ family, node, reason }, 'The pods of a Node cannot be reached from here; all others can');
    }
    if (few) return;
    const leftOut = changes.filter(({ reason }) => reason !== undefined);
    const back = changes.filter(({ reason }) => reason === undefined);
    if (back.length > 0) this.#logger.info({ family, ...summary(back) }, 'Many Nodes are not left out any more');
    if (leftOut.length === 0) return;
    const reasons = [...new Set(leftOut.map(({ reason }) => reason))].slice(0, REASONS);
    this.#logger.warn({ family, ...summary(leftOut), reasons }, 'The pods of many Nodes cannot be reached from here');
  }
}

function summary(changes: readonly Change[]) {
  return { count: changes.length, nodes: changes.slice(0, NAMED).map(({ node }) => node) };
}
