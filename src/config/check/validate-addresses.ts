import { type Cidr, type IpAddress, NodeplaneError, parseCidr, tryParseIp } from '../../core/index.ts';
import type { DetectLocal, KubeProxyConfig } from '../file/kube-proxy-config.ts';
import type { Configuration, FieldPath } from '../file/schema.ts';
import type { Problems } from '../problems.ts';
import { type BindAddress, isUnspecified, parseBindAddress } from '../values/bind-address.ts';
import { whyNoInterfaceName } from './interface-name.ts';

/** The node IP that `bindAddress` stands for; undefined if it leaves it to the Node object. */
export function readNodeIp(text: string, problems: Problems): IpAddress | undefined {
  const ip = tryParseIp(text);
  if (!ip) problems.add('bindAddress', `"${text}" is not an IP address: give one of this node, or 0.0.0.0 or ::`);
  return ip && !isUnspecified(ip) ? ip : undefined;
}

/** Where a server listens. The empty address is for the caller to judge: it means off, and not every server can be off. */
export function readServerAddress(
  path: 'healthzBindAddress' | 'metricsBindAddress' | 'nodeplane.statusBindAddress',
  text: string,
  problems: Problems,
): BindAddress {
  const address = parseBindAddress(text);
  if (!address) problems.add(path, `"${text}" is not IP:port with a port from 1 to 65535`);
  return address as BindAddress;
}

/** All addresses, the Node object's, or those of the given blocks. */
export function readNodePortAddresses(
  list: readonly string[] | null,
  problems: Problems,
): KubeProxyConfig['nodePortAddresses'] {
  if (!list?.length) return 'all';
  if (list.length === 1 && list[0] === 'primary') return 'primary';
  if (list.includes('primary')) {
    const message = `"primary" stands for itself and cannot be mixed with CIDRs, as in "${list.join(',')}": give one or the other`;
    problems.add('nodePortAddresses', message);
  }
  return readCidrs(
    'nodePortAddresses',
    list.filter((item) => item !== 'primary'),
    problems,
  );
}

/** How local traffic is told, with the setting that the mode needs. */
export function readDetectLocal(effective: Configuration, problems: Problems): DetectLocal {
  const { bridgeInterface, interfaceNamePrefix } = effective.detectLocal;
  const mode = problems.oneOf('detectLocalMode', effective.detectLocalMode, [
    'ClusterCIDR',
    'NodeCIDR',
    'BridgeInterface',
    'InterfaceNamePrefix',
  ]);
  switch (mode) {
    case 'NodeCIDR':
      return { mode };
    case 'BridgeInterface':
      if (bridgeInterface === '') {
        const message = `"" names nothing, but is needed by the mode ${mode}: name the bridge of the pods`;
        problems.add('detectLocal.bridgeInterface', message);
      }
      refuseNoName('detectLocal.bridgeInterface', bridgeInterface, problems);
      return { mode, bridgeInterface };
    case 'InterfaceNamePrefix':
      if (interfaceNamePrefix === '') {
        const message = `"" names nothing, but is needed by the mode ${mode}: give how names of pods’ interfaces begin`;
        problems.add('detectLocal.interfaceNamePrefix', message);
      }
      refuseNoName('detectLocal.interfaceNamePrefix', interfaceNamePrefix, problems);
      return { mode, interfaceNamePrefix };
    default:
      return { mode, cidrs: readClusterCidrs(effective.clusterCIDR, problems) };
  }
}

/** kube-proxy takes such a name, and fails at each sync, or matches nothing. */
function refuseNoName(path: FieldPath, name: string, problems: Problems): void {
  const reason = whyNoInterfaceName(name);
  if (reason) problems.add(path, `${JSON.stringify(name)} ${reason}: give it as "ip link" shows it`);
}

/** One block, or one of each family, separated by a comma; none at all if nobody gave any. */
function readClusterCidrs(text: string, problems: Problems): Cidr[] {
  if (text === '') return [];
  const cidrs = readCidrs('clusterCIDR', text.split(','), problems);
  const families = new Set(cidrs.map((cidr) => cidr.address.family));
  if (cidrs.length > families.size)
    problems.add('clusterCIDR', `"${text}" has more than one CIDR of a family: give one, or one IPv4 and one IPv6`);
  return cidrs;
}

/** Those that can be read; each of the others is a problem at `path`. */
export function readCidrs(path: FieldPath, texts: readonly string[], problems: Problems): Cidr[] {
  return texts.flatMap((text) => {
    try {
      return [parseCidr(text)];
    } catch (error) {
      if (!(error instanceof NodeplaneError)) throw error;
      const orPrimary = path === 'nodePortAddresses' ? ', nor "primary"' : '';
      problems.add(path, `"${text}" is not a CIDR such as 10.244.0.0/16${orPrimary}`);
      return [];
    }
  });
}
