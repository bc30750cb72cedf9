import type { PlanDelta } from '../plan/index.ts';

/** More names than these are no news but a number. */
const FEW = 5;

/** The Services of what changed, in the order of their change; empty: more than a line can hold. */
export function fewServices({ upserted, removed }: PlanDelta): readonly string[] {
  const names = new Set<string>();
  for (const ports of [upserted, removed]) {
    for (const { serviceName } of ports) {
      names.add(serviceName);
      if (names.size > FEW) return [];
    }
  }
  return [...names];
}
