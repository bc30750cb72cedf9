import type { Drift } from '../../../core/index.ts';

/** A sysctl that has another value than it was set to. */
export function sysctlDrift(name: string, value: number, present: string): Drift {
  const lines = { ours: [`${name}=${value}`], theirs: [`${name}=${present}`] };
  return { object: `sysctl ${name}`, difference: 'changed', ...lines };
}
