import type { Clock, IpFamily, Timer } from '../../core/index.ts';
import type { RouteKernel } from '../kernel/route-kernel.ts';
import { isOurDevice } from '../plan/device-diff.ts';
import { type RouteSettings, TUNNEL_NAMES, tunnelKind } from '../plan/tunnel.ts';

/** How long a VXLAN device goes on receiving after this node has stopped sending by it: other nodes change later. */
export const TUNNEL_KEPT_MS = 10_000;
/** How long this node goes on sending as before after it has made its VXLAN device: other nodes have yet to make theirs. */
const OLD_WAY_MS = 1000;

/**
 * The waits by which nodes that change from one way to the other at the same time do not lose each other: each receives by both
 * ways before it sends by the new one, and until some time after.
 */
export class ChangeOver {
  readonly #clock: Clock;
  readonly #due: () => void;
  /** By name of a device, since when it is not wanted. */
  readonly #leaving = new Map<string, number>();
  #timer: Timer | undefined;
  #endWait: (() => void) | undefined;
  #stopped = false;

  /** @param due told when a device that was kept may go */
  constructor(clock: Clock, due: () => void) {
    this.#clock = clock;
    this.#due = due;
  }

  /** Until other nodes can be expected to receive by the new way, or the work is to end. */
  async othersAreReady(): Promise<void> {
    if (this.#stopped) return;
    await new Promise<void>((resolve) => {
      this.#endWait = resolve;
      this.#clock.setTimer(resolve, OLD_WAY_MS);
    });
  }

  /** Whether a device that is not wanted may be removed; if not, it is told when it may. */
  mayGo(name: string): boolean {
    const since = this.#leaving.get(name) ?? this.#clock.now();
    const leftMs = since + TUNNEL_KEPT_MS - this.#clock.now();
    if (leftMs <= 0 || this.#stopped) return leftMs <= 0;
    this.#leaving.set(name, since);
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(this.#due, leftMs);
    return false;
  }

  /** It is not there any more. */
  gone(name: string): void {
    this.#leaving.delete(name);
  }

  /** Whether the device is there although it is not wanted. */
  isKept(name: string): boolean {
    return this.#leaving.has(name);
  }

  /** Nobody is waited for any more. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#endWait?.();
  }
}

/** Whether a VXLAN device of ours is there although this node is to have no tunnel. Throws KernelError. */
export function leavesTunnel(
  kernel: RouteKernel,
  family: IpFamily,
  settings: Pick<RouteSettings, 'mode' | 'tunnel'>,
): boolean {
  const present = tunnelKind(settings) === undefined ? kernel.device(TUNNEL_NAMES[family]) : undefined;
  return present !== undefined && isOurDevice(present);
}
