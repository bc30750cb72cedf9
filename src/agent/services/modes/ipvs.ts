import type { KubeProxyConfig } from '../../../config/index.ts';
import type { IpFamily } from '../../../core/index.ts';
import { checkIpvs, IpvsDataplane, prepareIpvs } from '../../../proxy/ipvs/index.ts';
import type { Exec } from '../../../sys/index.ts';
import type { Logger } from '../../logger.ts';
import { usableVariants } from './iptables.ts';
import { registerTrafficMetrics } from './ipvs-traffic.ts';
import type { PreparedMode } from './prepared-mode.ts';

/**
 * Finds what IPVS mode needs: virtual servers, the scheduler, dummy devices, ipsets, and iptables for its few rules.
 *
 * @param families those the machine has
 * @throws ERR_IPVS naming what is missing; ERR_IPTABLES when no family has a working iptables; ERR_IPTABLES_LOCK
 */
export async function prepareIpvsMode(
  config: KubeProxyConfig,
  families: readonly IpFamily[],
  exec: Exec,
  logger: Logger,
): Promise<PreparedMode> {
  const { scheduler, excludeCidrs } = config.ipvs;
  await checkIpvs({ scheduler, exec });
  const { variants, unserved } = await usableVariants(config.iptablesVariant, families, exec);
  return {
    mode: 'ipvs',
    families: [...variants.keys()],
    unserved,
    begin(registry) {
      const written = prepareIpvs(config.ipvs);
      if (written.length > 0) logger.info({ written }, 'IPVS set up');
      const dataplanes: IpvsDataplane[] = [];
      if (config.serviceTrafficMetrics > 0) {
        registerTrafficMetrics(registry, config.serviceTrafficMetrics, () => dataplanes);
      }
      return (family) => {
        const { variant } = variants.get(family)!;
        const dataplane = new IpvsDataplane({ family, variant, exec, scheduler, excludeCidrs });
        dataplanes.push(dataplane);
        return dataplane;
      };
    },
  };
}
