import type { IpFamily } from '../../../core/index.ts';
import { type Exec, readSysctl } from '../../../sys/index.ts';
import type { Mode, ModeLogger } from '../../index.ts';
import { detectVariant, iptablesTool, usableVariants, type VariantSettings } from '../../rules/index.ts';
import { IptablesDataplane, type OtherVariant } from '../dataplane.ts';
import { enableRouteLocalnet, guardLoopback } from '../route-localnet.ts';
import { setUpAccounting } from './accounting.ts';
import { IPTABLES_METRICS } from './metrics.ts';
import { iptablesTraces } from './traces.ts';

/** What mode iptables reads of the configuration. */
export interface IptablesModeSettings extends VariantSettings {
  /** Whether NodePorts answer at 127.0.0.1. */
  readonly localhostNodePorts: boolean;
}

/** Services as iptables rules, in the variant of iptables the node uses. */
export const iptablesMode: Mode<IptablesModeSettings> = {
  async prepare(settings, machine) {
    const { exec, logger } = machine;
    const { variants, unserved } = await usableVariants(settings, machine);
    return {
      families: [...variants.keys()],
      unserved,
      begin(registry) {
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
  },
  // The container that runs afterwards may not be allowed to write the switch, so the rules that go with it come too.
  async initialise(settings, families, exec) {
    if (settings.localhostNodePorts && families.includes('IPv4')) await allowLoopback(settings, exec);
  },
  traces: iptablesTraces,
  replaces: ['nftables', 'ipvs'],
  flowProtocols: ['UDP', 'SCTP'],
  hasLoopbackNodePorts: true,
  metrics: IPTABLES_METRICS,
};

async function allowLoopback({ iptablesVariant }: VariantSettings, exec: Exec): Promise<void> {
  const { variant } = await detectVariant('IPv4', exec, iptablesVariant === 'auto' ? undefined : iptablesVariant);
  await guardLoopback(iptablesTool('IPv4', variant, exec));
  enableRouteLocalnet();
}

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
