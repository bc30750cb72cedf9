/**
 * Work that nobody awaits failed: what a timer, an event or a promise led to. It is told as a warning of the process. The
 * agent logs and counts these; any other program prints them.
 */
export class BackgroundFailure extends Error {
  /** What was being done, one of few: `timer`, `health check ports`. */
  readonly work: string;

  constructor(work: string, cause: unknown) {
    super(`${work}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'BackgroundFailure';
    this.work = work;
  }
}

/** Tells that work nobody awaits has failed. Never throws. */
export function tellFailure(work: string, error: unknown): void {
  process.emitWarning(new BackgroundFailure(work, error));
}

/** Does work that nobody awaits. What it throws or rejects with is told and ends nothing. */
export function inBackground(work: string, run: () => unknown): void {
  try {
    const result = run();
    if (result instanceof Promise) result.catch((error) => tellFailure(work, error));
  } catch (error) {
    tellFailure(work, error);
  }
}

/** Who can be stopped. */
export interface Running {
  stop(): void | Promise<void>;
}

/**
 * Stops one after the other. What throws is told, and does not keep those behind it from being stopped.
 *
 * @param begun told before each
 */
export async function stopAll(running: Iterable<Running>, begun: (each: Running) => void = () => {}): Promise<void> {
  for (const each of running) {
    begun(each);
    try {
      await each.stop();
    } catch (error) {
      tellFailure('stop', error);
    }
  }
}
