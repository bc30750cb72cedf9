/** Asked between two steps of long work: a promise to be awaited when it is time to let others run, undefined before. */
export type Rest = () => Promise<void> | undefined;

/**
 * Cuts long work on the event loop into slices, so that probes, timers and sockets are served in between. Call the function
 * it returns after each step, a Service port, say:
 *
 *     const rest = yielder();
 *     for (const port of ports) {
 *       compile(port);
 *       await rest();
 *     }
 *
 * Nothing is waited for until the slice is used up. Of all that is cut so, one slice is done a turn: two pieces of work at a
 * time make the turns more, not longer. In a loop of very small steps `const wait = rest(); if (wait) await wait;`
 * saves the microtask that `await undefined` costs.
 *
 * @param sliceMs milliseconds of work between two turns of the event loop: with the garbage that is collected meanwhile and
 *   the step that goes beyond it, a turn takes up to three times as long
 * @param now a monotonic clock in milliseconds
 * @returns a promise to be awaited when the slice is over, which begins the next one; undefined while there is time
 */
export function yielder(sliceMs = 5, now: () => number = monotonic): Rest {
  // With a clock of its own nobody shares a turn.
  const begin = now === monotonic ? sliceBegan : now;
  let began = begin();
  return () => {
    if (now() - began < sliceMs) return undefined;
    return new Promise((resolve) => {
      nextTurn(() => {
        began = begin();
        resolve();
      });
    });
  };
}

const monotonic = () => performance.now();

/** When the slice of this turn began; undefined while there is none. */
let current: number | undefined;

/** Work that begins in a turn where other work has used its slice gets what is left of it. */
function sliceBegan(): number {
  if (current === undefined) {
    current = monotonic();
    setImmediate(() => {
      current = undefined;
    });
  }
  return current;
}

/** Slices that wait for a turn of their own, the oldest first. */
const waiting: (() => void)[] = [];

/**
 * Not a timer, which waits at least a millisecond, nor a microtask, which lets nothing else run. Timers and sockets have their
 * turn between an immediate and the one it asks for; all that were asked for before have the same turn.
 */
function nextTurn(goOn: () => void): void {
  if (waiting.push(goOn) === 1) setImmediate(goOnWithOne);
}

function goOnWithOne(): void {
  const goOn = waiting.shift();
  if (waiting.length > 0) setImmediate(goOnWithOne);
  current = undefined;
  goOn?.();
}

/** Work that may be interrupted wherever it yields: the same code runs at once, or in slices where it may be long. */
export type Steps<T> = Generator<undefined, T>;

/** Does all of it now. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/**
 * Does it in slices, between which the event loop runs.
 *
 * @param rest of `yielder`, for several pieces of work to share their slices. @default slices of its own
 */
export async function inSlices<T>(steps: Steps<T>, rest = yielder()): Promise<T> {
  let step = steps.next();
  while (!step.done) {
    const wait = rest();
    if (wait) await wait;
    step = steps.next();
  }
  return step.value;
}
