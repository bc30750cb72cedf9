import type { IpFamily } from '../../../core/index.ts';
import { readSysctl } from '../../../sys/index.ts';
import type { Mode, ModeLogger } from '../../index.ts';
import { kernelTables, LegacyWatch, usableVariants, type VariantSettings } from '../../rules/index.ts';
import { IptablesDataplane, type OtherVariant } from '../dataplane.ts';
import { JUMPS } from '../fixed-chains.ts';
import { setUpAccounting } from './accounting.ts';
import { IPTABLES_METRICS } from './metrics.ts';
import { iptablesTraces } from './traces.ts';

/** Services as iptables rules, in the variant of iptables the node uses. */
export const iptablesMode: Mode<VariantSettings> = {
  async prepare(settings, machine) {
    const { exec, logger } = machine;
    const { variants, unserved } = await usableVariants(settings, machine);
    return {
      families: [...variants.keys()],
      unserved,
      begin(registry) {
        const accounting = setUpAccounting(registry, logger);
        const dropInvalid = !isConntrackLiberal();
        return (family, { changedByOthers }) => {
          const { variant, otherHoldsServices } = variants.get(family)!;
          return new IptablesDataplane({
            family,
            variant,
            exec,
            dropInvalid,
            accounting,
            kernelTables: kernelTables(variant, family, JUMPS, changedByOthers),
            ...(variant === 'legacy' && { legacyWatch: new LegacyWatch({ family, flushed: changedByOthers }) }),
            ...(otherHoldsServices && { otherVariant: tellOtherVariant(family, logger) }),
          });
        };
      },
    };
  },
  traces: iptablesTraces,
  replaces: ['nftables', 'ipvs'],
  flowProtocols: ['UDP', 'SCTP'],
  unansweredProtocols: ['TCP'],
  localhostProtocols: ['TCP', 'UDP', 'SCTP'],
  metrics: IPTABLES_METRICS,
};

/** Whether out-of-window packets are let through by conntrack, so that there is no INVALID state to drop. */
function isConntrackLiberal(): boolean {
  try {
    return readSysctl('net/netfilter/nf_conntrack_tcp_be_liberal') !== '0';
  } catch {
    // nf_conntrack is not loaded yet; the kernel's default is 0.
    return false;
  }
}

function tellOtherVariant(family: IpFamily, logger: ModeLogger): OtherVariant {
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
