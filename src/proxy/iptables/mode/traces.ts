import type { IpFamily } from '../../../core/index.ts';
import type { Trace, TraceOptions } from '../../index.ts';
import { bothVariants, isUsable } from '../../rules/index.ts';
import { cleanupIptables } from '../cleanup.ts';

/** The rules of either variant. */
export function iptablesTraces(family: IpFamily, { exec }: TraceOptions): Trace[] {
  return bothVariants(family, exec).map((tool) => {
    const place = `iptables-${tool.variant} ${family}`;
    return {
      name: place,
      isUsable: () => isUsable(tool),
      clean: (removals) => cleanupIptables(tool, removals && { place, removals }),
    };
  });
}
