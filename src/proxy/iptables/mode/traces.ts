import type { IpFamily } from '../../../core/index.ts';
import type { Trace, TraceOptions } from '../../index.ts';
import { bothVariants, isUsable } from '../../rules/index.ts';
import { cleanupIptables } from '../cleanup.ts';

/** The rules of either variant. */
export function iptablesTraces(family: IpFamily, { exec }: TraceOptions): Trace[] {
  return bothVariants(family, exec).map((tool) => ({
    name: `iptables-${tool.variant} ${family}`,
    isUsable: () => isUsable(tool),
    clean: () => cleanupIptables(tool),
  }));
}
