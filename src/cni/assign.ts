import type { IpAddress } from '../core/index.ts';
import { NodeplaneError } from '../core/index.ts';
import { type IpamConfig, readResolvConf, release, reserve } from '../ipam/index.ts';
import { failpoint } from '../sys/index.ts';
import type { AssignedAddresses } from './addressing.ts';
import type { Attaching } from './attaching.ts';
import { CNI_ERROR, CniError } from './errors.ts';
import { FEATURES } from './features/index.ts';

/**
 * Has addresses assigned to the attachment by whoever manages those of its network.
 *
 * @param excluded addresses that must not be handed out although nobody reserved them
 * @throws ERR_IPAM_*; CniError, of the plugin that manages the addresses
 */
export async function assignAddresses(
  attaching: Attaching,
  excluded: readonly IpAddress[],
): Promise<AssignedAddresses> {
  const { ipam } = attaching.config;
  if (ipam.kind === 'none') return { ips: [], routes: [], dns: {} };
  if (ipam.kind === 'native') return assignNatively(attaching, ipam.config, excluded);
  const { addByDelegate, deleteByDelegate, findPlugin } = await import('./delegate.ts');
  const { env, header, undo } = attaching;
  findPlugin(ipam.type, env);
  undo.add(`have addresses assigned by ${ipam.type}`, () => deleteByDelegate(ipam.type, header, env));
  const { ips, routes, dns } = await addByDelegate(ipam.type, header, env);
  if (ips.length === 0) {
    throw new CniError(CNI_ERROR.DELEGATE_FAILED, `IPAM plugin "${ipam.type}" assigned no address`);
  }
  return { ips, routes, dns };
}

async function assignNatively(
  { config, key, undo, host, report }: Attaching,
  ipam: IpamConfig,
  excluded: readonly IpAddress[],
): Promise<AssignedAddresses> {
  const dns = ipam.resolvConf ? readResolvConf(ipam.resolvConf) : {};
  const location = { dataDir: ipam.dataDir, network: config.name };
  const { rangeSets, exclude, requested } = ipam;
  const request = {
    owner: key.owner,
    name: key.hostName,
    rangeSets,
    excluded,
    exclude,
    requested,
    features: FEATURES.filter((feature) => feature.wanted(config)).map(({ name }) => name),
  };
  const tryReserve = () => reserve(location, request);
  let reservations: ReturnType<typeof reserve>;
  try {
    reservations = tryReserve();
  } catch (error) {
    if (!(error instanceof NodeplaneError) || error.code !== 'ERR_IPAM_EXHAUSTED') throw error;
    const { collectVanished } = await import('./gc.ts');
    if (collectVanished(location, host, report) === 0) throw error;
    reservations = tryReserve();
  }
  undo.add('reserve addresses', () => void release(location, key.owner, key.hostName));
  failpoint('reserved');
  return {
    ips: reservations.map(({ address, range }) => ({
      address: { address, prefixLength: range.subnet.prefixLength },
      gateway: range.gateway,
    })),
    routes: ipam.routes,
    dns,
  };
}
