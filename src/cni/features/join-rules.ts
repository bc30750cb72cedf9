import type { DesiredRules } from './feature.ts';

/** Several desired states as one. */
export function joinRules(parts: readonly Partial<DesiredRules>[]): DesiredRules {
  return {
    elements: parts.flatMap(({ elements = [] }) => elements),
    chains: parts.flatMap(({ chains = [] }) => chains),
    admissions: parts.flatMap(({ admissions = [] }) => admissions),
    passing: parts.flatMap(({ passing = [] }) => passing),
  };
}
