import type { Registry } from 'prom-client';
import type { KubeProxyConfig } from '../../../config/index.ts';
import { errorText, type IpFamily, isForeignLock, NodeplaneError } from '../../../core/index.ts';
import { IptablesDataplane, type OtherVariant } from '../../../proxy/iptables/index.ts';
import { type DetectedVariant, detectVariant, whyIptablesMissing } from '../../../proxy/rules/index.ts';
import type { Exec } from '../../../sys/index.ts';
import type { Logger } from '../../logger.ts';
import { isConntrackLiberal } from '../../preflight.ts';
import { setUpAccounting } from '../accounting.ts';
import type { PreparedMode } from './prepared-mode.ts';

/**
 * Finds the variant of iptables in use, for each family.
 *
 * @param families those the machine has
 * @throws ERR_IPTABLES when none of them has a working iptables; ERR_IPTABLES_LOCK
 */
export async function prepareIptables(
  config: Pick<KubeProxyConfig, 'iptablesVariant'>,
  families: readonly IpFamily[],
  exec: Exec,
  logger: Logger,
): Promise<PreparedMode> {
  const { variants, unserved } = await usableVariants(config.iptablesVariant, families, exec);
  return {
    mode: 'iptables',
    families: [...variants.keys()],
    unserved,
    begin(registry: Registry) {
      const accounting = setUpAccounting(registry, logger);
      const dropInvalid = !isConntrackLiberal();
      return (family) => {
        const { variant, otherHoldsServices } = variants.get(family)!;
        return new IptablesDataplane({
          family,
          variant,
          exec,
          dropInvalid,
          accounting,
          ...(otherHoldsServices && { otherVariant: tellOtherVariant(family, logger) }),
        });
      };
    },
  };
}

/** What looking for iptables found. */
export interface UsableVariants {
  readonly variants: ReadonlyMap<IpFamily, DetectedVariant>;
  /** Why there is none for a family. */
  readonly unserved: ReadonlyMap<IpFamily, string>;
}

/**
 * The variant of iptables in use, for each family that has one.
 *
 * @throws ERR_IPTABLES when none has; ERR_IPTABLES_LOCK when that cannot be told before somebody gives up the lock
 */
export async function usableVariants(
  wanted: KubeProxyConfig['iptablesVariant'],
  families: readonly IpFamily[],
  exec: Exec,
): Promise<UsableVariants> {
  const variants = new Map<IpFamily, DetectedVariant>();
  const unserved = new Map<IpFamily, string>();
  let failure: unknown;
  for (const family of families) {
    try {
      variants.set(family, await usableVariant(family, exec, wanted));
    } catch (error) {
      // It says nothing about what works here.
      if (isForeignLock(error)) throw error;
      failure ??= error;
      unserved.set(family, errorText(error));
    }
  }
  if (variants.size === 0) throw failure;
  return { variants, unserved };
}

/** @throws ERR_IPTABLES when there is no program, or the kernel has no NAT for it; ERR_IPTABLES_LOCK */
async function usableVariant(
  family: IpFamily,
  exec: Exec,
  wanted: KubeProxyConfig['iptablesVariant'],
): Promise<DetectedVariant> {
  const detected = await detectVariant(family, exec, wanted === 'auto' ? undefined : wanted);
  const { variant } = detected;
  const missing = await whyIptablesMissing(family, variant, exec);
  if (missing === undefined) return detected;
  const message = `Cannot use iptables-${variant} for ${family}: ${missing}`;
  throw new NodeplaneError('ERR_IPTABLES', message, { facts: { family, variant } });
}

function tellOtherVariant(family: IpFamily, logger: Logger): OtherVariant {
  return {
    cleaned: (other) =>
      logger.info({ family, variant: other }, 'A proxy’s rules in the other iptables variant are removed'),
    failed: (other, error) =>
      logger.warn(
        { family, variant: other, err: error },
        'A proxy’s rules in the other iptables variant apply too and could not be removed',
      ),
  };
}
