import type { PlanDelta } from '../../../proxy/index.ts';
import type { PortReading } from './traffic-book.ts';

/** Where it is known what Service ports have carried. */
export interface TrafficSource {
  /** Whether it knows packets and bytes, besides connections. */
  readonly hasCarried: boolean;
  /** How often connections came faster than they could be counted. */
  readonly lost: number;
  /** Says what a sync is going to change. */
  note(delta: PlanDelta): void;
  /** Of every port there is. Rejects with KernelError, ERR_NETLINK_*. */
  read(): Promise<Iterable<PortReading>>;
  close(): Promise<void>;
}
