import type { Cidr, IpFamily } from '../../../core/index.ts';
import type { Mode } from '../../index.ts';
import { kernelTables, LegacyWatch, RESTORE_METRICS, usableVariants, type VariantSettings } from '../../rules/index.ts';
import { checkIpvs } from '../check-ipvs.ts';
import { JUMPS } from '../compile/rules.ts';
import { IpvsDataplane } from '../dataplane.ts';
import { type IpvsSettings, ipvsSysctls, prepareIpvs } from '../settings.ts';
import { SCHEDULER_HINT } from './scheduler-hint.ts';
import { ipvsTraces } from './traces.ts';

/** What mode ipvs reads of the configuration. */
export interface IpvsModeSettings extends VariantSettings {
  readonly ipvs: IpvsSettings & {
    /** Of Services that name none; empty: rr. */
    readonly scheduler: string;
    /** What is in these ranges is not ours, unless we made it. */
    readonly excludeCidrs: readonly Cidr[];
  };
}

/** Services as virtual servers of IPVS: needs those, the scheduler, dummy devices, ipsets, and iptables for its few rules. */
export const ipvsMode: Mode<IpvsModeSettings> = {
  async prepare(settings, machine) {
    const { exec, logger } = machine;
    const { scheduler, excludeCidrs } = settings.ipvs;
    await checkIpvs({ scheduler, exec });
    const { variants, unserved } = await usableVariants(settings, machine);
    const dataplanes = new Map<IpFamily, IpvsDataplane>();
    return {
      families: [...variants.keys()],
      unserved,
      begin() {
        const written = prepareIpvs(settings.ipvs);
        if (written.length > 0) logger.info({ written }, 'IPVS set up');
        return (family, { changedByOthers }) => {
          const { variant } = variants.get(family)!;
          const dataplane = new IpvsDataplane({
            family,
            variant,
            exec,
            scheduler,
            excludeCidrs,
            kernelTables: kernelTables(variant, family, JUMPS, changedByOthers),
            ...(variant === 'legacy' && { legacyWatch: new LegacyWatch({ family, flushed: changedByOthers }) }),
          });
          dataplanes.set(family, dataplane);
          return dataplane;
        };
      },
      traffic: () => new Map([...dataplanes].map(([family, dataplane]) => [family, dataplane.traffic()])),
    };
  },
  traces: ipvsTraces,
  // Not mode iptables: both share chains, and each rewrites the other's.
  replaces: ['nftables'],
  // Associations of SCTP may finish (diff/drain.ts), and their source may be translated by conntrack.
  flowProtocols: ['UDP'],
  // Where its connections go is in a table of its own.
  unansweredProtocols: [],
  // Associations of SCTP do not come about through the stand-in and IPVS (tried).
  localhostProtocols: ['TCP', 'UDP'],
  metrics: RESTORE_METRICS,
  sysctls: ({ ipvs }) => ipvsSysctls(ipvs),
  hint: SCHEDULER_HINT,
};
