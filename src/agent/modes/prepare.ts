import type { KubeProxyConfig } from '../../config/index.ts';
import { type IpFamily, NodeplaneError } from '../../core/index.ts';
import type { Exec } from '../../sys/index.ts';
import type { Logger } from '../logger.ts';
import { prepareIptables } from './iptables.ts';
import type { PreparedMode } from './prepared-mode.ts';

/**
 * Looks whether the mode asked for can be used here.
 *
 * @param families those the machine has
 * @throws ERR_CONFIG, ERR_IPTABLES with one sentence about what is missing; rather than doing something else than asked for
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
    default:
      throw new NodeplaneError('ERR_CONFIG', `Cannot run in mode "${config.mode}": this release has only iptables`);
  }
}
