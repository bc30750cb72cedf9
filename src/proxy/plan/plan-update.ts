import type { Restriction } from './bounds/findings.ts';
import type { PlanDelta } from './service-plan.ts';
import type { PortTroubles } from './troubles/trouble-book.ts';

/** What is new for one Service: the problems it has now; empty when the earlier ones are mended. */
export interface ServiceProblem {
  readonly serviceName: string;
  readonly problems: readonly string[];
}

/** Service ports that cannot be reached on this node because their policy is Local, by the policy that says so. */
export interface NoLocalEndpoints {
  readonly internal: number;
  readonly external: number;
}

/** Services of which a part is not served, by the reason. */
export type RestrictedServices = Readonly<Record<Restriction, number>>;

/** What planning brought: what the dataplane has to do and what people should know. */
export interface PlanUpdate {
  readonly delta: PlanDelta;
  readonly problems: readonly ServiceProblem[];
  /** Of ports whose troubles are others than before. */
  readonly troubles: readonly PortTroubles[];
}
