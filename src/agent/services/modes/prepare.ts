import type { KubeProxyConfig } from '../../../config/index.ts';
import type { IpFamily } from '../../../core/index.ts';
import type { Exec } from '../../../sys/index.ts';
import type { Logger } from '../../logger.ts';
import { prepareIptables } from './iptables.ts';
import { prepareIpvsMode } from './ipvs.ts';
import { prepareNftables } from './nftables.ts';
import type { PreparedMode } from './prepared-mode.ts';

/**
 * Looks whether the mode asked for can be used here.
 *
 * @param families those the machine has
 * @throws ERR_IPTABLES, ERR_NFTABLES, ERR_IPVS with one sentence about what is missing; rather than doing something else than asked for;
 *   ERR_IPTABLES_LOCK when that cannot be told now
 */
export async function prepareMode(
  config: KubeProxyConfig,
  families: readonly IpFamily[],
  exec: Exec,
  logger: Logger,
): Promise<PreparedMode> {
  switch (config.mode) {
    case 'iptables':
      return prepareIptables(config, families, exec, logger);
    case 'nftables':
      return prepareNftables(families);
    case 'ipvs':
      return prepareIpvsMode(config, families, exec, logger);
  }
}
