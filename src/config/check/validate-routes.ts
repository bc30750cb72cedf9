import { isAbsolute } from 'node:path';
import { type IpFamily, tryParseCidr } from '../../core/index.ts';
import { type MasqueradeConfig, ROUTE_MODES, ROUTE_TUNNELS, type RoutesConfig } from '../file/kube-proxy-config.ts';
import type { Configuration } from '../file/schema.ts';
import type { Problems } from '../problems.ts';
import { whyNoInterfaceName } from './interface-name.ts';
import { readCidrs } from './validate-addresses.ts';

/** RFC 791: what every host takes. */
const LEAST_MTU = 576;

/**
 * Nothing but the mode is checked where there are no routes.
 *
 * @param clusterCidr as in the file, checked elsewhere
 */
export function readRoutes(
  section: Configuration['nodeplane']['routes'],
  clusterCidr: string,
  problems: Problems,
): RoutesConfig | undefined {
  const { vni, port, mtu, interface: interfaceName, wireguard, clearNetworkUnavailable, flannel } = section;
  const mode = problems.oneOf('nodeplane.routes.mode', section.mode, ROUTE_MODES);
  if (mode === 'none') return undefined;
  const tunnel = problems.oneOf('nodeplane.routes.tunnel', section.tunnel, ROUTE_TUNNELS);
  problems.inRange('nodeplane.routes.vni', vni, 0, 2 ** 24 - 1);
  problems.inRange('nodeplane.routes.port', port, 1, 65535);
  if (mtu !== 0) problems.inRange('nodeplane.routes.mtu', mtu, LEAST_MTU, 65535);
  const misnamed = whyNoInterfaceName(interfaceName);
  if (misnamed !== undefined) {
    problems.add(
      'nodeplane.routes.interface',
      `${JSON.stringify(interfaceName)} ${misnamed}: give the name of an interface, as "ip link" shows it`,
    );
  }
  problems.inRange('nodeplane.routes.wireguard.port', wireguard.port, 1, 65535);
  problems.inRange('nodeplane.routes.wireguard.keepalive', wireguard.keepalive, 0, 65535);
  if (!isAbsolute(wireguard.keyFile)) {
    problems.add('nodeplane.routes.wireguard.keyFile', `"${wireguard.keyFile}" is no absolute path`);
  }
  if (flannel.annotations && (mode === 'wireguard' || (mode === 'auto' && tunnel === 'wireguard'))) {
    const message = 'nodes of flannel do not reach pods through nodeplane’s WireGuard: leave it out, or use vxlan';
    problems.add('nodeplane.routes.flannel.annotations', message);
  }
  const networks = clusterCidr.split(',').flatMap((text) => tryParseCidr(text.trim()) ?? []);
  if (flannel.subnetFile !== '' && !isAbsolute(flannel.subnetFile)) {
    problems.add('nodeplane.routes.flannel.subnetFile', `"${flannel.subnetFile}" is no absolute path`);
  }
  if (flannel.subnetFile !== '' && networks.length === 0) {
    const message = `"${flannel.subnetFile}" needs the addresses of all pods: give clusterCIDR (--cluster-cidr) or --routes-flannel-net-conf`;
    problems.add('nodeplane.routes.flannel.subnetFile', message);
  }
  return {
    mode,
    tunnel,
    vni,
    port,
    mtu: mtu === 0 ? undefined : mtu,
    interfaceName: interfaceName || undefined,
    wireguard: { port: wireguard.port, keepaliveSeconds: wireguard.keepalive, keyFile: wireguard.keyFile },
    masquerade: readMasquerade(section.masquerade, problems),
    clearNetworkUnavailable,
    flannel: { annotations: flannel.annotations, subnetFile: flannel.subnetFile || undefined, networks },
  };
}

/** What stands for the pods of this node in one family. */
const OWN_PODS: ReadonlyMap<string, IpFamily> = new Map([
  ['ipv4', 'IPv4'],
  ['ipv6', 'IPv6'],
]);

function readMasquerade(
  section: Configuration['nodeplane']['routes']['masquerade'],
  problems: Problems,
): MasqueradeConfig | undefined {
  const path = 'nodeplane.routes.masquerade.cidrs';
  const { cidrs, nonMasqueradeCIDRs, randomFully } = section;
  const list = cidrs ?? [];
  const exempt = readCidrs('nodeplane.routes.masquerade.nonMasqueradeCIDRs', nonMasqueradeCIDRs ?? [], problems);
  if (list.includes('none')) {
    if (list.length > 1) {
      const message = `"none" stands for itself and cannot be mixed with others, as in "${list.join(',')}": give it alone, or leave it out`;
      problems.add(path, message);
    }
    return undefined;
  }
  const ownPods = list.flatMap((item) => OWN_PODS.get(item) ?? []);
  const others = list.filter((item) => !OWN_PODS.has(item));
  return { ownPods, sources: readCidrs(path, others, problems), exempt, randomFully };
}
