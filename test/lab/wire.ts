import { execFileSync } from 'node:child_process';
import { isIPv6 } from 'node:net';
import { inNetns, writeSysctl } from '../../src/sys/index.ts';
import type { TestNamespace } from './namespace.ts';

/**
 * The physical network of a lab: a bridge in a namespace of its own that nodes and outside clients are plugged into.
 *
 * It carries 192.168.50.0/24 and fd00:50::/64. Its own addresses (.254 and ::fe) are the nodes' default gateway and a
 * black hole: what no lab host owns is dropped there without an answer, like an address nobody uses on a real network.
 */
export interface Wire {
  readonly namespace: TestNamespace;
  /** Plugs a namespace in: an interface of that name with these addresses (prefix lengths are the wire's), up. */
  plug(host: TestNamespace, interfaceName: string, ips: readonly string[]): void;
}

export const WIRE_GATEWAYS = ['192.168.50.254', 'fd00:50::fe'] as const;
const BRIDGE = 'wire';

export function createWire(namespace: TestNamespace): Wire {
  let ports = 0;
  skipDuplicateAddressDetection(namespace);
  ip(namespace, [
    'link set lo up',
    // Without snooping every port hears IPv6 neighbour discovery at once.
    `link add ${BRIDGE} type bridge mcast_snooping 0`,
    ...WIRE_GATEWAYS.map((address) => addAddress(address, BRIDGE)),
    `link set ${BRIDGE} up`,
  ]);
  // Some machines have forwarding on from the start; then this would be a router and answer for addresses it cannot reach.
  inNetns(namespace.path, () => writeSysctl('net/ipv4/ip_forward', 0));
  return {
    namespace,
    plug(host, interfaceName, ips) {
      const port = `port${++ports}`;
      skipDuplicateAddressDetection(host);
      ip(namespace, [
        `link add ${port} type veth peer name ${interfaceName} netns ${host.name}`,
        `link set ${port} master ${BRIDGE} up`,
      ]);
      ip(host, [
        'link set lo up',
        `link set ${interfaceName} up`,
        ...ips.map((address) => addAddress(address, interfaceName)),
      ]);
    },
  };
}

/** Runs `ip` commands inside a namespace, all or an error naming the first that failed. */
export function ip(namespace: TestNamespace, commands: readonly string[]): void {
  execFileSync('ip', ['-n', namespace.name, '-batch', '-'], {
    input: `${commands.join('\n')}\n`,
    stdio: ['pipe', 'ignore', 'pipe'],
  });
}

/** The address with its prefix length on the wire. */
function addAddress(address: string, interfaceName: string): string {
  return `address add ${address}/${isIPv6(address) ? 64 : 24} dev ${interfaceName}`;
}

/**
 * For every interface the namespace will get. Otherwise an interface's link-local address is tentative for up to two
 * seconds, and until then a node cannot ask for the neighbours it forwards IPv6 packets to.
 */
function skipDuplicateAddressDetection(namespace: TestNamespace): void {
  inNetns(namespace.path, () => writeSysctl('net/ipv6/conf/default/accept_dad', 0));
}
