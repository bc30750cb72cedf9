import { NodeplaneError } from '../core/index.ts';
import { type KubeObject, objectKey } from './objects/types.ts';
import { type ObjectSource, problemText } from './source.ts';

/** What a source said once, as far as it can be read. */
export interface ReadObjects {
  readonly objects: readonly KubeObject[];
  /** What of it cannot be used, in words. */
  readonly problems: readonly string[];
  /** What of it is in force and probably not meant, in words. */
  readonly doubts: readonly string[];
}

/**
 * Reads what a source has at the moment, and stops it.
 *
 * @param what is read, for the message
 * @throws ERR_API when it has not told everything within `patienceMs`, with the problems it told of; what the source's start
 *   throws
 */
export async function readOnce(source: ObjectSource, what: string, patienceMs: number): Promise<ReadObjects> {
  const objects = new Map<string, KubeObject>();
  let problems: readonly string[] = [];
  let doubts: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const late = () =>
        reject(new NodeplaneError('ERR_API', `Cannot read ${what}: ${problems.join('; ') || 'no answer'}`));
      // The clock's own timers do not keep a process alive.
      timer = setTimeout(late, patienceMs);
      source
        .start({
          event: ({ type, object }) => {
            if (type === 'deleted') objects.delete(objectKey(object));
            else objects.set(objectKey(object), object);
          },
          synced: resolve,
          problems: (all) => {
            problems = all.filter(({ inForce }) => !inForce).map(problemText);
            doubts = all.filter(({ inForce }) => inForce).map(problemText);
          },
        })
        .catch(reject);
    });
  } finally {
    clearTimeout(timer);
    await source.stop();
  }
  return { objects: [...objects.values()], problems, doubts };
}
