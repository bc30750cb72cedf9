import type { Place } from '../select.ts';
import type { ServicePortPlan } from '../service-plan.ts';
import { type PortTrouble, troublesOf } from './troubles.ts';

/** What is new for one Service port: the troubles it has now; none when the earlier ones are mended. */
export interface PortTroubles {
  readonly serviceName: string;
  readonly portKey: string;
  readonly troubles: readonly PortTrouble[];
}

const NONE: readonly PortTrouble[] = [];

/** Remembers the troubles of Service ports, to tell when they are others. */
export class TroubleBook {
  /** By port key, of those that have any. */
  readonly #troubles = new Map<string, readonly PortTrouble[]>();

  /**
   * Enters what is planned for a port now; undefined: there is none any more.
   *
   * @returns undefined when the troubles are those of before
   */
  enter(
    portKey: string,
    serviceName: string,
    now: ServicePortPlan | undefined,
    place: Place,
  ): PortTroubles | undefined {
    const before = this.#troubles.get(portKey) ?? NONE;
    const troubles = now ? troublesOf(now, place) : NONE;
    if (before.length === troubles.length && before.every(({ text }, at) => text === troubles[at]!.text))
      return undefined;
    if (troubles.length > 0) this.#troubles.set(portKey, troubles);
    else this.#troubles.delete(portKey);
    return { serviceName, portKey, troubles };
  }
}
