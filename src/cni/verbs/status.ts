import { errorText } from '../../core/index.ts';
import { checkAvailable } from '../../ipam/index.ts';
import { withNetlink } from '../../netlink/index.ts';
import { NETLINK_ROUTE } from '../../netlink/uapi/index.ts';
import { parseNetworkConfig } from '../config/config.ts';
import { warnOfUnknownKeys } from '../config/known-keys.ts';
import type { NetworkConfig } from '../config/network-config.ts';
import { linkFinder } from '../link/host-link.ts';
import { podNetwork } from '../pod-networks.ts';
import type { Environment } from '../protocol/environment.ts';
import { CNI_ERROR, CniError, toCniError } from '../protocol/errors.ts';
import type { NetworkHeader } from '../protocol/header.ts';
import type { VerbRequest } from './request.ts';

/**
 * STATUS: succeeds if an ADD would. Changes nothing.
 *
 * @throws CniError 51 when pods have lost their bridge; 50 when an ADD would fail; 7 when the configuration cannot be used
 */
export async function checkStatus({ header, env, warn }: VerbRequest): Promise<undefined> {
  const config = parseNetworkConfig(header, undefined);
  warnOfUnknownKeys(header.raw, config, warn);
  try {
    checkNode(config);
  } catch (error) {
    if (error instanceof CniError && error.cniCode === CNI_ERROR.LIMITED_CONNECTIVITY) throw error;
    const { message, details } = toCniError(error);
    throw new CniError(CNI_ERROR.PLUGIN_NOT_AVAILABLE, message, { details, cause: error });
  }
  if (config.ipam.kind === 'delegate') await checkDelegate(config.ipam.type, header, env);
}

function checkNode(config: NetworkConfig): void {
  const { mode, name, ipam } = config;
  const network = podNetwork(mode);
  withNetlink(NETLINK_ROUTE, (host) => {
    network.checkPods(host, config);
    const excluded = network.checkNode(host, config);
    if (ipam.kind !== 'native') return;
    const { dataDir, rangeSets, exclude } = ipam.config;
    checkAvailable({ dataDir, network: name }, { rangeSets, exclude, excluded }, linkFinder(host));
  });
}

async function checkDelegate(type: string, header: NetworkHeader, env: Environment): Promise<void> {
  const { askDelegate, isTooOld } = await import('./delegate.ts');
  try {
    await askDelegate('STATUS', type, header, env);
  } catch (error) {
    // A plugin older than STATUS has nothing to say.
    if (isTooOld(error)) return;
    if (error instanceof CniError) throw error;
    throw new CniError(CNI_ERROR.PLUGIN_NOT_AVAILABLE, errorText(error), { cause: error });
  }
}
