import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { attempt, type Cidr, formatCidr, IP_FAMILIES, ipFromValue, ipValue, NodeplaneError } from '../../core/index.ts';
import type { OwnEnd } from '../sync/events.ts';

/** What flannel's CNI plugin is told by its file subnet.env. */
export interface SubnetEnv {
  /** The ranges of all nodes' pods. */
  readonly networks: readonly Cidr[];
  /** This node, in one or two families. */
  readonly ends: readonly Pick<OwnEnd, 'ranges' | 'mtu'>[];
  /** Whether somebody but flannel's plugin masquerades what leaves the cluster; otherwise the plugin does. */
  readonly masquerade: boolean;
}

/**
 * The file in which flannel tells its CNI plugin of the node's network, to the byte (WriteSubnetFile in pkg/subnet of flannel
 * 0.28), but for the MTU: that of the family with the smaller one, since the plugin knows only one.
 */
export function subnetEnv({ networks, ends, masquerade }: SubnetEnv): string {
  const lines = IP_FAMILIES.flatMap((family) => {
    const isOf = ({ address }: Cidr) => address.family === family;
    const range = ends.flatMap(({ ranges }) => ranges).find(isOf);
    const ofFamily = networks.filter(isOf);
    if (!range || ofFamily.length === 0) return [];
    const prefix = family === 'IPv4' ? 'FLANNEL_' : 'FLANNEL_IPV6_';
    return [
      `${prefix}NETWORK=${ofFamily.map(formatCidr).join(',')}`,
      `${prefix}SUBNET=${formatCidr({ ...range, address: ipFromValue(family, ipValue(range.address) + 1n) })}`,
    ];
  });
  lines.push(`FLANNEL_MTU=${Math.min(...ends.map(({ mtu }) => mtu))}`, `FLANNEL_IPMASQ=${masquerade}`);
  return `${lines.join('\n')}\n`;
}

/**
 * Puts the file in place at once, with its folder; nothing is written if it is there already.
 *
 * @throws ERR_ROUTES
 */
export function placeSubnetEnv(path: string, text: string): void {
  if (attempt(() => readFileSync(path, 'utf8')) === text) return;
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(temporary, text);
    // Whatever the umask is: plugins of other users read it.
    chmodSync(temporary, 0o644);
    renameSync(temporary, path);
  } catch (cause) {
    if (existsSync(temporary)) rmSync(temporary);
    const message = `Cannot write "${path}", which flannel's CNI plugin reads; correct --routes-flannel-subnet-file or the folder's permissions`;
    throw new NodeplaneError('ERR_ROUTES', message, { facts: { path }, cause });
  }
}
