import { errorText } from '../../core/index.ts';
import { type AttachmentFeature, FEATURES, type LeaveContext, type TearDownContext } from '../features/index.ts';

/**
 * Loads features for their end, in its order: the reverse of ADD's.
 *
 * @param recorded the names in an attachment's record; all features when it has none
 */
export function loadForTearDown(recorded: readonly string[] | undefined): Promise<AttachmentFeature[]> {
  const named = FEATURES.filter(({ name }) => !recorded || recorded.includes(name));
  return Promise.all(named.toReversed().map((feature) => feature.load()));
}

/** Removes what features made in the pod's namespace, before the link to it goes. Throws the first failure. */
export function leavePod(features: readonly AttachmentFeature[], context: LeaveContext): void {
  for (const feature of features) feature.leavePod?.(context);
}

/**
 * Removes what features made for an attachment. One that fails does not keep the others from being taken down.
 *
 * @throws the first failure; the others are reported
 */
export function tearDown(features: readonly AttachmentFeature[], context: TearDownContext): void {
  const failures: unknown[] = [];
  for (const feature of features) {
    try {
      feature.tearDown(context);
    } catch (error) {
      failures.push(error);
    }
  }
  for (const other of failures.slice(1)) context.warn(errorText(other));
  if (failures.length > 0) throw failures[0];
}
