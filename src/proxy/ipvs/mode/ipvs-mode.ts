import type { Cidr } from '../../../core/index.ts';
import type { Mode } from '../../index.ts';
import { RESTORE_METRICS, usableVariants, type VariantSettings } from '../../rules/index.ts';
import { IpvsDataplane } from '../dataplane.ts';
import { checkIpvs } from '../preflight.ts';
import { type IpvsSettings, prepareIpvs } from '../settings.ts';
import { SCHEDULER_HINT } from './scheduler-hint.ts';
import { ipvsTraces } from './traces.ts';
import { registerTrafficMetrics } from './traffic-metrics.ts';

/** What mode ipvs reads of the configuration. */
export interface IpvsModeSettings extends VariantSettings {
  readonly ipvs: IpvsSettings & {
    /** Of Services that name none; empty: rr. */
    readonly scheduler: string;
    /** What is in these ranges is not ours, unless we made it. */
    readonly excludeCidrs: readonly Cidr[];
  };
  /** With up to so many Services the traffic of each is shown; 0: of none. */
  readonly serviceTrafficMetrics: number;
}

/** Services as virtual servers of IPVS: needs those, the scheduler, dummy devices, ipsets, and iptables for its few rules. */
export const ipvsMode: Mode<IpvsModeSettings> = {
  async prepare(settings, machine) {
    const { exec, logger } = machine;
    const { scheduler, excludeCidrs } = settings.ipvs;
    await checkIpvs({ scheduler, exec });
    const { variants, unserved } = await usableVariants(settings, machine);
    return {
      families: [...variants.keys()],
      unserved,
      begin(registry) {
        const written = prepareIpvs(settings.ipvs);
        if (written.length > 0) logger.info({ written }, 'IPVS set up');
        const dataplanes: IpvsDataplane[] = [];
        if (settings.serviceTrafficMetrics > 0) {
          registerTrafficMetrics(registry, settings.serviceTrafficMetrics, () => dataplanes);
        }
        return (family) => {
          const { variant } = variants.get(family)!;
          const dataplane = new IpvsDataplane({ family, variant, exec, scheduler, excludeCidrs });
          dataplanes.push(dataplane);
          return dataplane;
        };
      },
    };
  },
  traces: ipvsTraces,
  // Not mode iptables: both share chains, and each rewrites the other's.
  replaces: ['nftables'],
  // Associations of SCTP may finish (diff/drain.ts), and their source may be translated by conntrack.
  flowProtocols: ['UDP'],
  // Associations of SCTP do not come about through the stand-in and IPVS (tried).
  localhostProtocols: ['TCP', 'UDP'],
  metrics: RESTORE_METRICS,
  hint: SCHEDULER_HINT,
};
