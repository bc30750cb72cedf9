import type { IpAddress, IpFamily } from '../../core/index.ts';

/** What the rules of the routes let others see; log and metrics live on it. */
export type RuleEvent =
  | {
      readonly kind: 'synced';
      readonly full: boolean;
      readonly seconds: number;
      /** How many elements were added or removed. */
      readonly elements: number;
      /** Others had removed or changed the table, which is back. */
      readonly repaired: boolean;
    }
  /** What was in force stays; it is tried again from scratch. */
  | { readonly kind: 'syncFailed'; readonly error: unknown; readonly retryInMs: number }
  /** Somebody else changed the table; all of it is compared at once. */
  | { readonly kind: 'disturbed' }
  /** The table could not be read between two syncs. */
  | { readonly kind: 'verifyFailed'; readonly error: unknown }
  /** The tunnel refused packets that came from no node, since it was last told. */
  | {
      readonly kind: 'refused';
      readonly family: IpFamily;
      readonly packets: number;
      /** Some of those who sent some in the last minutes. */
      readonly sources: readonly IpAddress[];
    };

/** Called synchronously, in order. Must not throw. */
export type RuleObserver = (event: RuleEvent) => void;
