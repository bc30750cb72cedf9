import type { Drift, IpFamily } from '../../core/index.ts';
import type { Plan, PlanDelta } from '../plan/index.ts';

/** One family of one way to make Services work in the kernel. Calls never overlap: the runner serialises them. */
export interface Dataplane {
  readonly family: IpFamily;
  /**
   * Brings the kernel from the last committed plan to `plan`, touching only what `delta` names. After a failure the
   * kernel holds the old or the new state and the next call must be `resync`.
   */
  sync(plan: Plan, delta: PlanDelta): Promise<Commit>;
  /** Makes the kernel equal to `plan` whatever is there now, including what a kube-proxy left behind. */
  resync(plan: Plan): Promise<Commit>;
  /** Reads the kernel back and says what differs from the last commit; empty when nothing does. */
  verify(): Promise<readonly Drift[]>;
  /** As `verify`, where that repairs something by the way: changes nothing. @default `verify` */
  compare?(): Promise<readonly Drift[]>;
  /** Removes everything that is ours or kube-proxy's, and nothing else. */
  cleanup(): Promise<void>;
  /** Ends what goes on between the calls and gives sockets back; the kernel stays as it is. No call may be under way. */
  close?(): void | Promise<void>;
}

/** What a commit did. */
export interface Commit {
  /** Seconds spent waiting for the kernel or the program that talks to it. */
  readonly kernelSeconds: number;
  /** Objects in the kernel and objects written by this commit, by table or kind (`nat`, `filter`, `elements`). */
  readonly objects: Readonly<Record<string, { readonly total: number; readonly written: number }>>;
  /** All Service ports that are not programmed because the kernel refuses them. @default none */
  readonly leftOut?: readonly LeftOutPort[];
  /** All was compared with the kernel, though only a change was asked for: rules of any Service may have been missing. @default false */
  readonly isWhole?: boolean;
}

/** A Service port the kernel, or the program that talks to it, refused, so that the others could be programmed. */
export interface LeftOutPort {
  /** Of its ServicePortPlan. */
  readonly key: string;
  /** Of its ServicePortPlan. */
  readonly name: string;
  /** What was said about it. */
  readonly reason: string;
  /** It is only suspected: there was no time to try it by itself. A full sync soon goes on with that. @default false */
  readonly untried?: boolean;
}
