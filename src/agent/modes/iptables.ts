import type { Registry } from 'prom-client';
import type { KubeProxyConfig } from '../../config/index.ts';
import { type IpFamily, NodeplaneError } from '../../core/index.ts';
import { IptablesDataplane, type OtherVariant } from '../../proxy/iptables/index.ts';
import { type DetectedVariant, detectVariant, isIptablesPresent, programName } from '../../proxy/rules/index.ts';
import type { Exec } from '../../sys/index.ts';
import { setUpAccounting } from '../accounting.ts';
import type { Logger } from '../logger.ts';
import { isConntrackLiberal } from '../preflight.ts';
import type { PreparedMode } from './prepared-mode.ts';

/**
 * Finds the variant of iptables in use, for each family.
 *
 * @param families those the machine has
 * @throws ERR_IPTABLES when none of them has a working iptables
 */
export async function prepareIptables(
  config: Pick<KubeProxyConfig, 'iptablesVariant'>,
  families: readonly IpFamily[],
  exec: Exec,
  logger: Logger,
): Promise<PreparedMode> {
  const variants = await usableVariants(config.iptablesVariant, families, exec, logger);
  return {
    mode: 'iptables',
    families: [...variants.keys()],
    begin(registry: Registry) {
      const accounting = setUpAccounting(registry, logger);
      const dropInvalid = !isConntrackLiberal();
      return (family) => {
        const { variant, otherHoldsServices } = variants.get(family)!;
        return new IptablesDataplane({
          ...{ family, variant, exec, dropInvalid, accounting },
          ...(otherHoldsServices && { otherVariant: tellOtherVariant(family, logger) }),
        });
      };
    },
  };
}

/**
 * The variant of iptables in use, for each family that has one.
 *
 * @throws ERR_IPTABLES when none has
 */
export async function usableVariants(
  wanted: KubeProxyConfig['iptablesVariant'],
  families: readonly IpFamily[],
  exec: Exec,
  logger: Logger,
): Promise<Map<IpFamily, DetectedVariant>> {
  const usable = new Map<IpFamily, DetectedVariant>();
  let failure: unknown;
  for (const family of families) {
    try {
      usable.set(family, await usableVariant(family, exec, wanted));
    } catch (error) {
      failure ??= error;
      logger.warn({ err: error }, `${family} is not served: its iptables does not work here`);
    }
  }
  if (usable.size === 0) throw failure;
  return usable;
}

/** @throws ERR_IPTABLES when there is no program, or the kernel has no NAT for it */
async function usableVariant(
  family: IpFamily,
  exec: Exec,
  wanted: KubeProxyConfig['iptablesVariant'],
): Promise<DetectedVariant> {
  const detected = await detectVariant(family, exec, wanted === 'auto' ? undefined : wanted);
  if (await isIptablesPresent(family, detected.variant, exec)) return detected;
  const program = programName(family, detected.variant);
  const message = `Cannot use ${program}: it lists no chain POSTROUTING in table nat; the kernel may lack NAT for ${family}`;
  throw new NodeplaneError('ERR_IPTABLES', message, { facts: { family, variant: detected.variant } });
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
