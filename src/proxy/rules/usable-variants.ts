import { errorText, type IpFamily, isForeignLock, NodeplaneError } from '../../core/index.ts';
import type { Exec } from '../../sys/index.ts';
import type { Machine } from '../index.ts';
import {
  type IptablesTool,
  type IptablesVariant,
  iptablesTool,
  isDenied,
  whyIptablesMissing,
} from './iptables-tool.ts';
import { UnreadableTableError } from './unreadable.ts';
import { type DetectedVariant, detectVariant } from './variant.ts';

/** What of the configuration decides about the variant. */
export interface VariantSettings {
  /** `auto`: the one the node uses. */
  readonly iptablesVariant: IptablesVariant | 'auto';
}

/** What looking for iptables found. */
export interface UsableVariants {
  readonly variants: ReadonlyMap<IpFamily, DetectedVariant>;
  /** Why there is none for a family. */
  readonly unserved: ReadonlyMap<IpFamily, string>;
}

/**
 * The variant of iptables in use, for each family that has one; the log says which and why.
 *
 * @throws ERR_IPTABLES when none has; ERR_IPTABLES_LOCK when that cannot be told before somebody gives up the lock
 */
export async function usableVariants(
  { iptablesVariant }: VariantSettings,
  { families, exec, logger }: Machine,
): Promise<UsableVariants> {
  const variants = new Map<IpFamily, DetectedVariant>();
  const unserved = new Map<IpFamily, string>();
  let failure: unknown;
  for (const family of families) {
    try {
      variants.set(family, await usableVariant(family, exec, iptablesVariant));
    } catch (error) {
      // It says nothing about what works here.
      if (isForeignLock(error)) throw error;
      failure ??= error;
      unserved.set(family, errorText(error));
    }
  }
  if (variants.size === 0) throw failure;
  for (const [family, { variant, reason, otherDenied }] of variants) {
    logger.info({ family, variant, reason }, 'Variant of iptables in use');
    if (otherDenied !== undefined) {
      const facts = { family, said: otherDenied };
      logger.warn(
        facts,
        'The other variant of iptables cannot be looked at: rules of a proxy in it would stay in force',
      );
    }
  }
  return { variants, unserved };
}

/** @throws ERR_IPTABLES when there is no program, or the kernel has no NAT for it; ERR_IPTABLES_LOCK */
async function usableVariant(
  family: IpFamily,
  exec: Exec,
  wanted: VariantSettings['iptablesVariant'],
): Promise<DetectedVariant> {
  const detected = await detectVariant(family, exec, wanted === 'auto' ? undefined : wanted);
  const { variant } = detected;
  const missing = await whyIptablesMissing(family, variant, exec);
  if (missing === undefined) return detected;
  const message = `Cannot use iptables-${variant} for ${family}: ${missing}`;
  throw new NodeplaneError('ERR_IPTABLES', message, { facts: { family, variant } });
}

/** The programs of both variants, whether there are any or not. */
export function bothVariants(family: IpFamily, exec: Exec): IptablesTool[] {
  return (['nft', 'legacy'] as const).map((variant) => iptablesTool(family, variant, exec));
}

/**
 * Whether a variant may hold rules here. So it may where its program cannot look: for want of a privilege, or because
 * of what is there; whoever uses it then is told.
 */
export async function mayHoldRules(tool: IptablesTool): Promise<boolean> {
  try {
    await tool.saveAll();
    return true;
  } catch (error) {
    return error instanceof UnreadableTableError || isDenied(error);
  }
}

/** Whether a variant works here. Listing shows it without loading its tables into the kernel, as other requests would. */
export async function isUsable(tool: IptablesTool): Promise<boolean> {
  try {
    await tool.saveAll();
    return true;
  } catch {
    return false;
  }
}
