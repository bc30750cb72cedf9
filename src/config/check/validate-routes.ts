import { tryParseCidr } from '../../core/index.ts';
import { ROUTE_MODES, type RoutesConfig } from '../file/kube-proxy-config.ts';
import type { Configuration } from '../file/schema.ts';
import type { Problems } from './problems.ts';

/** IFNAMSIZ has room for 16 bytes with the final NUL. */
const LONGEST_INTERFACE_NAME = 15;

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
  const { vni, port, mtu, interface: interfaceName, clearNetworkUnavailable, flannel } = section;
  const mode = problems.oneOf('nodeplane.routes.mode', section.mode, ROUTE_MODES);
  if (mode === 'none') return undefined;
  problems.inRange('nodeplane.routes.vni', vni, 0, 2 ** 24 - 1);
  problems.inRange('nodeplane.routes.port', port, 1, 65535);
  if (mtu !== 0) problems.inRange('nodeplane.routes.mtu', mtu, LEAST_MTU, 65535);
  if (Buffer.byteLength(interfaceName) > LONGEST_INTERFACE_NAME) {
    problems.add('nodeplane.routes.interface', `"${interfaceName}" is longer than ${LONGEST_INTERFACE_NAME} bytes`);
  }
  const networks = clusterCidr.split(',').flatMap((text) => tryParseCidr(text.trim()) ?? []);
  if (flannel.subnetFile !== '' && networks.length === 0) {
    const message = 'needs the addresses of all pods: give clusterCIDR (--cluster-cidr) or --routes-flannel-net-conf';
    problems.add('nodeplane.routes.flannel.subnetFile', message);
  }
  return {
    mode,
    vni,
    port,
    mtu: mtu === 0 ? undefined : mtu,
    interfaceName: interfaceName || undefined,
    clearNetworkUnavailable,
    flannel: { annotations: flannel.annotations, subnetFile: flannel.subnetFile || undefined, networks },
  };
}
