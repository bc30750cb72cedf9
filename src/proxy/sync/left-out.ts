import { compareText, type Drift } from '../../core/index.ts';
import type { PlanDelta } from '../plan/index.ts';
import type { LeftOutPort } from './dataplane.ts';

/** Service ports to leave out, by key. */
export type LeftOut = ReadonlyMap<string, LeftOutPort>;

/** How a mode finds the Service ports a refusal is about. */
export interface Blame {
  /** Whether the kernel, or the program that talks to it, objected to what it was given, rather than could not work at all. */
  readonly isRefusal: (error: unknown) => boolean;
  /** The ports of which the error names an object, by key; none when it names nobody's. */
  readonly named: (error: unknown) => LeftOut;
  /** The ports that are refused when they are tried out (`bisect`), by key; none when it is not the ports. */
  readonly tryOut: () => Promise<LeftOut>;
}

/** Attempts that may be refused with a port that the error names; each is a whole commit. Then the ports are tried out. */
const MAX_NAMED = 8;

/**
 * The Service ports of one family that are not programmed because they are refused: one bad Service must not keep the others
 * from being programmed. They stay left out until they change or everything is tried again.
 */
export class LeftOutPorts {
  readonly #ports = new Map<string, LeftOutPort>();

  has(key: string): boolean {
    return this.#ports.has(key);
  }

  add(port: LeftOutPort): void {
    this.#ports.set(port.key, port);
  }

  /** What changes is tried again, and what is gone is not left out any more. */
  forget({ upserted, removed }: PlanDelta): void {
    for (const { key } of removed) this.#ports.delete(key);
    for (const { key } of upserted) this.#ports.delete(key);
  }

  /**
   * Everything is tried again.
   *
   * @returns what was left out until now, by key, for `bisect`
   */
  forgetAll(): LeftOut {
    const before = new Map(this.#ports);
    this.#ports.clear();
    return before;
  }

  /** For a Commit; sorted by key. */
  list(): LeftOutPort[] {
    return [...this.#ports.values()].sort((a, b) => compareText(a.key, b.key));
  }

  /**
   * Commits, again and again without the ports that are refused, until the rest is accepted.
   *
   * @param attempt commits everything but the ports left out by then
   * @throws what the attempt throws when that is no refusal, or no port is to blame for it
   */
  async commitRest<T>(attempt: () => Promise<T>, blame: Blame): Promise<T> {
    let tried = false;
    for (let refusals = 1; ; refusals++) {
      try {
        return await attempt();
      } catch (error) {
        if (refusals <= MAX_NAMED && this.#leaveOutNamed(error, blame)) continue;
        if (tried) throw error;
        tried = true;
        await this.#leaveOutTried(error, blame);
      }
    }
  }

  /**
   * Leaves out the ports that `error` is about.
   *
   * @throws `error` when it is no refusal, or no port is to blame for it
   */
  async leaveOut(error: unknown, blame: Blame): Promise<void> {
    if (!this.#leaveOutNamed(error, blame)) await this.#leaveOutTried(error, blame);
  }

  #leaveOutNamed(error: unknown, { isRefusal, named }: Blame): boolean {
    return isRefusal(error) && this.#addAll(named(error));
  }

  async #leaveOutTried(error: unknown, { isRefusal, tryOut }: Blame): Promise<void> {
    if (!isRefusal(error) || !this.#addAll(await tryOut())) throw error;
  }

  #addAll(found: LeftOut): boolean {
    for (const port of found.values()) this.add(port);
    return found.size > 0;
  }
}

/** What is meant and not in the kernel because that refuses it. */
export function leftOutDrift(ports: readonly LeftOutPort[]): Drift[] {
  return ports.map(({ name, reason }) => {
    const theirs = [`the kernel refuses it: ${reason}`];
    return { object: `Service port ${name}`, difference: 'missing', ours: [], theirs };
  });
}
