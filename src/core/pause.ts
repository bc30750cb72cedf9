/** Asked between two steps of long work: a promise when it is time to let others run first, else undefined. */
export type Pause = () => Promise<void> | undefined;

/**
 * Long work gives the event loop back each time it has had it for `sliceMs`, so that the health server, the CNI and
 * signals are answered meanwhile. Made anew for each piece of work; what it has read may have changed after a pause.
 */
export function pauseEvery(sliceMs: number): Pause {
  let since = performance.now();
  return () => {
    if (performance.now() - since < sliceMs) return undefined;
    return new Promise((resolve) => {
      // After the sockets that are ready, unlike a resolved promise or nextTick.
      setImmediate(() => {
        since = performance.now();
        resolve();
      });
    });
  };
}
