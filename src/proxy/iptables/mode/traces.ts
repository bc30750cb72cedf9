import type { IpFamily } from '../../../core/index.ts';
import { closing } from '../../../netlink/index.ts';
import { Nftables } from '../../../netlink/nftables/index.ts';
import { legacyTables } from '../../../sys/index.ts';
import type { Trace, TraceOptions } from '../../index.ts';
import { bothVariants, type IptablesVariant, mayHoldRules, TABLES } from '../../rules/index.ts';
import { cleanupIptables } from '../cleanup.ts';

/** The tables that a proxy writes to; of mangle only to mark that somebody flushes. */
const WRITTEN: ReadonlySet<string> = new Set([...TABLES, 'mangle']);

/** The rules of either variant. */
export function iptablesTraces(family: IpFamily, { exec }: TraceOptions): Trace[] {
  return bothVariants(family, exec).map((tool) => {
    const place = `iptables-${tool.variant} ${family}`;
    return {
      name: place,
      isUsable: () => mayHoldRules(tool),
      isInUse: () => mayHaveRules(tool.variant, family),
      clean: (removals) => cleanupIptables(tool, removals && { place, removals }),
    };
  });
}

/** Asks the kernel, because the programs take two processes a variant, and starting one from a grown agent makes that pause. */
function mayHaveRules(variant: IptablesVariant, family: IpFamily): boolean {
  if (variant === 'legacy') return legacyTables(family)?.length !== 0;
  try {
    const tables = closing(Nftables.open(), (nft) => nft.listTables(family === 'IPv4' ? 'ip' : 'ip6'));
    return tables.some(({ name }) => WRITTEN.has(name));
  } catch {
    // Where there is no nf_tables, the programs say so.
    return true;
  }
}
