import { type Clock, formatIp, type Steps } from '../../core/index.ts';
import type { LeftOutPorts } from '../index.ts';
import { type Changes, NO_CHANGES, planChanges } from './diff/diff.ts';
import { type Draining, drainStep } from './diff/drain.ts';
import { type Layout, nothingTouched, type Touched, union } from './diff/layout.ts';
import type { MutableState } from './diff/state.ts';
import { applyChanges, nothingWritten, WRITTEN_KINDS, type Written } from './kernel/apply.ts';
import type { IpvsKernel } from './kernel/kernel.ts';

/** What should be in the kernel, and what is known to be in it. */
export interface Target {
  readonly layout: Layout;
  /** Kept up to date as operations succeed. */
  readonly state: MutableState;
}

/** What bringing the kernel in line took. */
export interface Done {
  readonly written: Written;
  readonly kernelSeconds: number;
}

/** What a Writer needs. */
export interface WriterOptions {
  readonly kernel: IpvsKernel;
  readonly clock: Clock;
  readonly draining: Draining;
  /** Keys of the virtual servers this process made: the writer keeps it. */
  readonly made: Set<string>;
  /** Where ports the kernel refuses go. */
  readonly leftOut: LeftOutPorts;
  /** How long connections to an endpoint that is gone may last. */
  readonly gracePeriodMs: number;
  /** Something may have begun to drain. */
  readonly applied: () => void;
}

/** Brings virtual servers, addresses and sets in line with a layout. */
export class Writer {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /**
   * Makes what was touched equal to the layout. Service ports the kernel refuses are left out, and what they had is taken
   * away again.
   *
   * @returns undefined when the kernel is not as we thought
   * @throws KernelError when something is refused that no Service port is to blame for
   */
  *bringInLine({ layout, state }: Target, first: Touched): Steps<Done | undefined> {
    const { kernel, draining, made, clock, applied: tellApplied } = this.#options;
    const written = nothingWritten();
    let kernelSeconds = 0;
    let touched = first;
    for (;;) {
      const changes = yield* planChanges(layout, state, draining, touched);
      for (const [key, reason] of changes.conflicts) this.#leaveOut(layout, key, reason);
      if (changes.conflicts.size > 0) {
        touched = union(touched, layout.takeTouched());
        continue;
      }
      const applied = yield* applyChanges({ kernel, state, draining, made, now: clock.now() }, changes);
      for (const kind of WRITTEN_KINDS) written[kind] += applied.written[kind];
      kernelSeconds += applied.kernelSeconds;
      tellApplied();
      if (applied.stale) return undefined;
      if (applied.failed) throw applied.failed;
      if (applied.refused.size === 0) return { written, kernelSeconds };
      for (const [key, { message }] of applied.refused) this.#leaveOut(layout, key, message);
      touched = layout.takeTouched();
    }
  }

  /**
   * Removes what is being drained and has no connections any more, or whose grace period is over. Throws KernelError
   * for what is refused.
   */
  *removeDrained({ layout, state }: Target): Steps<void> {
    const { kernel, draining, made, clock, gracePeriodMs } = this.#options;
    const now = clock.now();
    const touched = nothingTouched();
    for (const [server, entry] of [...draining.servers]) {
      yield;
      if (!state.servers.has(server)) {
        // Somebody else removed it, and a full sync has noticed.
        draining.forget(server);
        continue;
      }
      const { remove, gone } = drainStep(entry, kernel.listDestinations(entry.key), now, gracePeriodMs);
      const steps = remove.length > 0 ? [remove] : [];
      const ended = [...remove.map(({ endpoint }) => endpoint), ...gone].map((each) => [server, each] as const);
      const changes: Changes = { ...NO_CHANGES, steps, revived: ended };
      for (const endpoint of gone) state.forgetDestination(entry.key, endpoint);
      const { failed } = yield* applyChanges({ kernel, state, draining, made, now }, changes);
      if (failed) throw failed;
      if (!entry.retired) continue;
      touched.servers.add(server);
      if (entry.key.kind === 'address') touched.addresses.add(formatIp(entry.key.address));
    }
    yield* this.bringInLine({ layout, state }, touched);
  }

  #leaveOut(layout: Layout, key: string, reason: string): void {
    this.#options.leftOut.add({ key, name: layout.ports.get(key)?.name ?? key, reason });
    layout.remove(key);
  }
}
