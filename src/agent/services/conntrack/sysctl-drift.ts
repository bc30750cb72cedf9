import { type Drift, isNotFound } from '../../../core/index.ts';

/** A sysctl that has another value than it was set to. */
export function sysctlDrift(name: string, value: number, present: string): Drift {
  const lines = { ours: [`${name}=${value}`], theirs: [`${name}=${present}`] };
  return { object: `sysctl ${name}`, difference: 'changed', ...lines };
}

/** Undefined where the kernel has no such sysctl. Throws KernelError. */
export function readIfThere(read: () => string): string | undefined {
  try {
    return read();
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
