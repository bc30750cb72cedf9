import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Cidr, type IpAddress, isNotFound, NodeplaneError, spanOfCidr } from '../../core/index.ts';
import { ReservationDirectory, type StoredReservation } from './directory.ts';

/**
 * All addresses that are reserved in a directory of reservations, in any network and by any program; one that is reserved in
 * two networks is in it twice. Nobody is waited for. No such directory: none.
 *
 * @throws ERR_IPAM_STORE
 */
export function reservedAddresses(dataDir: string): IpAddress[] {
  return perNetwork(dataDir, (directory) => directory.addresses());
}

/** The same with the network of each, and who holds it as its file says. Throws ERR_IPAM_STORE. */
export function reservations(dataDir: string): (StoredReservation & { readonly network: string })[] {
  return perNetwork(dataDir, (directory, network) => directory.list().map((file) => ({ ...file, network })));
}

function perNetwork<T>(dataDir: string, read: (directory: ReservationDirectory, network: string) => T[]): T[] {
  try {
    const networks = readdirSync(dataDir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return networks.flatMap(({ name }) => read(new ReservationDirectory(join(dataDir, name)), name));
  } catch (error) {
    if (isNotFound(error)) return [];
    throw new NodeplaneError('ERR_IPAM_STORE', `Cannot read "${dataDir}"`, { facts: { path: dataDir }, cause: error });
  }
}

/** How many pods a subnet has addresses for: all but the network's, the gateway and the IPv4 broadcast address. */
export function podCapacity(subnet: Cidr): number {
  const { family, first, last } = spanOfCidr(subnet);
  return Math.max(0, Number(last - first) + 1 - (family === 'IPv4' ? 3 : 2));
}
