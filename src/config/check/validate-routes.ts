import { isAbsolute } from 'node:path';
import { ROUTE_MODES, ROUTE_TUNNELS, type RoutesConfig } from '../file/kube-proxy-config.ts';
import type { Configuration } from '../file/schema.ts';
import type { Problems } from './problems.ts';

/** IFNAMSIZ has room for 16 bytes with the final NUL. */
const LONGEST_INTERFACE_NAME = 15;

/** RFC 791: what every host takes. */
const LEAST_MTU = 576;

/** Nothing but the mode is checked where there are no routes. */
export function readRoutes(
  section: Configuration['nodeplane']['routes'],
  problems: Problems,
): RoutesConfig | undefined {
  const { vni, port, mtu, interface: interfaceName, wireguard } = section;
  const mode = problems.oneOf('nodeplane.routes.mode', section.mode, ROUTE_MODES);
  if (mode === 'none') return undefined;
  const tunnel = problems.oneOf('nodeplane.routes.tunnel', section.tunnel, ROUTE_TUNNELS);
  problems.inRange('nodeplane.routes.vni', vni, 0, 2 ** 24 - 1);
  problems.inRange('nodeplane.routes.port', port, 1, 65535);
  if (mtu !== 0) problems.inRange('nodeplane.routes.mtu', mtu, LEAST_MTU, 65535);
  if (Buffer.byteLength(interfaceName) > LONGEST_INTERFACE_NAME) {
    problems.add('nodeplane.routes.interface', `"${interfaceName}" is longer than ${LONGEST_INTERFACE_NAME} bytes`);
  }
  problems.inRange('nodeplane.routes.wireguard.port', wireguard.port, 1, 65535);
  problems.inRange('nodeplane.routes.wireguard.keepalive', wireguard.keepalive, 0, 65535);
  if (!isAbsolute(wireguard.keyFile)) {
    problems.add('nodeplane.routes.wireguard.keyFile', `"${wireguard.keyFile}" is no absolute path`);
  }
  return {
    mode,
    tunnel,
    vni,
    port,
    mtu: mtu === 0 ? undefined : mtu,
    interfaceName: interfaceName || undefined,
    wireguard: { port: wireguard.port, keepaliveSeconds: wireguard.keepalive, keyFile: wireguard.keyFile },
  };
}
