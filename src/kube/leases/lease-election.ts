import type { Clock } from '../../core/index.ts';
import type { NewObject, ObjectName, StoredObject } from '../api/client/api-object.ts';
import type { ObjectClient } from '../api/client/object-client.ts';
import { isRefused } from '../api/client/object-error.ts';
import { type LeaseRecord, microTime, readLeaseRecord } from './lease-record.ts';

export interface LeaseElectionOptions {
  readonly leases: ObjectClient;
  readonly lease: Required<ObjectName>;
  /** Never empty. */
  readonly identity: string;
  /** How long others leave a lease of ours alone after its last renewal. */
  readonly durationSeconds: number;
  readonly clock: Clock;
}

/** The Lease as it was last seen. */
interface Observed {
  readonly object: StoredObject;
  readonly record: LeaseRecord;
  /** The spec as text; it differs after every renewal. */
  readonly text: string;
  /** By our clock's `now`, when it was first seen like this: not before it was written. */
  readonly changedAt: number;
}

/**
 * One identity's tries for one Lease, by the rules of client-go's leader election
 * (k8s.io/client-go/tools/leaderelection): every write is a compare-and-swap, and the lease of another has expired when it
 * was not seen to change for its duration by our own clock. The times in it are never compared with ours.
 *
 * Its methods must not be called while one of them is still at work.
 */
export class LeaseElection {
  readonly #options: LeaseElectionOptions;
  #observed: Observed | undefined;
  #writes = 0;

  constructor(options: LeaseElectionOptions) {
    this.#options = options;
  }

  /** Who held the lease when it was last seen; empty: nobody; undefined: not known. */
  get holder(): string | undefined {
    return this.#observed?.record.holder;
  }

  /**
   * Gets or renews the lease unless it is another's, with up to three requests.
   *
   * @returns the clock's `now` at which the write was sent that was done; undefined: another holds the lease, or was faster
   * @throws ObjectError, ERR_API: nothing is known about the lease
   */
  async attempt(signal: AbortSignal): Promise<number | undefined> {
    const known = this.#observed;
    const isOurs = known?.record.holder === this.#options.identity;
    // A renewal needs no look at the lease before: if anybody wrote it since, it is refused.
    const renewedAt = known && isOurs ? await this.#replace(known, this.#taken(known), signal) : undefined;
    if (renewedAt !== undefined) return renewedAt;

    const found = await this.#look(signal);
    if (!found) return await this.#create(signal);
    return this.#isFree(found) ? await this.#replace(found, this.#taken(found), signal) : undefined;
  }

  /**
   * Leaves the lease to whoever comes next, at once, if it is ours. As in client-go, nobody holds it then, for a second.
   *
   * @throws as `attempt`
   */
  async release(signal: AbortSignal): Promise<void> {
    const known = this.#observed;
    if (!known || known.record.holder !== this.#options.identity) return;
    if ((await this.#replace(known, this.#released(known), signal)) !== undefined) return;
    // A renewal may have been done although its answer was lost.
    const found = await this.#look(signal);
    if (found?.record.holder !== this.#options.identity) return;
    await this.#replace(found, this.#released(found), signal);
  }

  #isFree({ record, changedAt }: Observed): boolean {
    const { identity, durationSeconds, clock } = this.#options;
    if (record.holder === '' || record.holder === identity) return true;
    return clock.now() - changedAt >= (record.durationSeconds ?? durationSeconds) * 1000;
  }

  async #look(signal: AbortSignal): Promise<Observed | undefined> {
    const { leases, lease } = this.#options;
    try {
      return this.#observe(await leases.get(lease, signal));
    } catch (error) {
      if (!isRefused(error, 'notFound')) throw error;
      this.#observed = undefined;
      return undefined;
    }
  }

  async #create(signal: AbortSignal): Promise<number | undefined> {
    const { leases, lease, clock } = this.#options;
    const { name, namespace } = lease;
    const now = this.#stamp();
    const spec = { ...this.#specOfOurs(now), acquireTime: now, leaseTransitions: 0 };
    const object: NewObject = { metadata: { name, namespace }, spec };
    return await this.#unlessBeaten(clock.now(), () => leases.create(object, signal));
  }

  async #replace({ object }: Observed, spec: object, signal: AbortSignal): Promise<number | undefined> {
    const { leases, clock } = this.#options;
    return await this.#unlessBeaten(clock.now(), () => leases.replace({ ...object, spec }, signal));
  }

  /** `sentAt`, or undefined when somebody else wrote, made or deleted the lease first. */
  async #unlessBeaten(sentAt: number, write: () => Promise<StoredObject>): Promise<number | undefined> {
    try {
      this.#observe(await write());
      return sentAt;
    } catch (error) {
      if (isRefused(error, 'conflict', 'alreadyExists', 'notFound')) return undefined;
      throw error;
    }
  }

  /** The spec with us as the holder. What others put into it stays. */
  #taken({ object, record }: Observed): object {
    const now = this.#stamp();
    const isOurs = record.holder === this.#options.identity;
    return {
      ...(object.spec as object | undefined),
      ...this.#specOfOurs(now),
      acquireTime: isOurs ? (record.acquireTime ?? now) : now,
      leaseTransitions: isOurs ? record.transitions : record.transitions + 1,
    };
  }

  #specOfOurs(renewTime: string): object {
    const { identity, durationSeconds } = this.#options;
    return { holderIdentity: identity, leaseDurationSeconds: durationSeconds, renewTime };
  }

  #released({ object }: Observed): object {
    const now = this.#stamp();
    const cleared = { holderIdentity: '', leaseDurationSeconds: 1, renewTime: now, acquireTime: now };
    return { ...(object.spec as object | undefined), ...cleared };
  }

  /**
   * The calendar's time. Below the millisecond it counts our writes, so that two renewals differ even when the calendar
   * stands still or is set back: others see that we live by the change alone.
   */
  #stamp(): string {
    this.#writes++;
    return microTime(this.#options.clock.wallTime(), this.#writes % 1000);
  }

  #observe(object: StoredObject): Observed {
    const text = JSON.stringify([object.metadata.uid, object.spec]);
    const known = this.#observed;
    const changedAt = known?.text === text ? known.changedAt : this.#options.clock.now();
    this.#observed = { object, record: readLeaseRecord(object.spec), text, changedAt };
    return this.#observed;
  }
}
