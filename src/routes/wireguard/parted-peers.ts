import type { Clock } from '../../core/index.ts';
import { formatKey, type PeerChange } from '../../netlink/wireguard/index.ts';
import { SESSION_SECONDS } from './session.ts';

/**
 * Peers that were removed within the length of a session: their nodes may go on sending by one that is unknown here, until they have
 * heard nothing for fifteen seconds. Who is a peer again is spoken to, so that both have a new one at once.
 */
export class PartedPeers {
  readonly #clock: Pick<Clock, 'now'>;
  /** When, by key text, in the order of that. */
  readonly #since = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Takes note of those that changes of peers remove. */
  note(changes: readonly PeerChange[]): void {
    const now = this.#clock.now();
    for (const [key, since] of this.#since) if (now - since > SESSION_SECONDS * 1000) this.#since.delete(key);
    for (const { publicKey, remove } of changes) if (remove) this.#since.set(formatKey(publicKey), now);
  }

  /** Whether a peer with this key, as text, was removed lately. */
  has(key: string): boolean {
    const since = this.#since.get(key);
    return since !== undefined && this.#clock.now() - since <= SESSION_SECONDS * 1000;
  }
}
