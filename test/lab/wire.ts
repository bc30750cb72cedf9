import { isIPv6 } from 'node:net';
import { inNetns, writeSysctl } from '../../src/sys/index.ts';
import { runForked } from './fork-server.ts';
import type { TestNamespace } from './namespace.ts';

/**
 * The physical network of a lab: a bridge in a namespace of its own that nodes and outside clients are plugged into.
 *
 * It carries 192.168.50.0/24 and fd00:50::/64. Its own addresses (.254 and ::fe) are the nodes' default gateway and a
 * black hole: what no lab host owns is dropped there without an answer, like an address nobody uses on a real network.
 */
export interface Wire {
  readonly namespace: TestNamespace;
  /** Its own addresses. */
  readonly gateways: readonly string[];
  /** Plugs a namespace in: an interface of that name with these addresses (prefix lengths are the wire's), up. */
  plug(host: TestNamespace, interfaceName: string, ips: readonly string[]): void;
}

export function createWire(namespace: TestNamespace): Wire {
  skipDuplicateAddressDetection(namespace);
  ip(namespace, ['link set lo up']);
  // Some machines have forwarding on from the start; then this would be a router and answer for addresses it cannot reach.
  inNetns(namespace.path, () => writeSysctl('net/ipv4/ip_forward', 0));
  return createSegment(namespace, 50);
}

/**
 * Another network beside the one that `wire` is: 192.168.60.0/24 and fd00:60::/64. What the two share is now a router between
 * them.
 */
export function createFarWire({ namespace }: Wire): Wire {
  const far = createSegment(namespace, 60);
  inNetns(namespace.path, () => {
    writeSysctl('net/ipv4/ip_forward', 1);
    writeSysctl('net/ipv6/conf/all/forwarding', 1);
  });
  return far;
}

function createSegment(namespace: TestNamespace, number: number): Wire {
  const bridge = `wire${number}`;
  const gateways = [`192.168.${number}.254`, `fd00:${number}::fe`];
  ip(namespace, [
    // Without snooping every port hears IPv6 neighbour discovery at once.
    `link add ${bridge} type bridge mcast_snooping 0`,
    ...gateways.map((address) => addAddress(address, bridge)),
    `link set ${bridge} up`,
  ]);
  let ports = 0;
  return {
    namespace,
    gateways,
    plug(host, interfaceName, ips) {
      const port = `port${number}-${++ports}`;
      skipDuplicateAddressDetection(host);
      ip(namespace, [
        `link add ${port} type veth peer name ${interfaceName} netns ${host.name}`,
        `link set ${port} master ${bridge} up`,
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
  runForked('ip', ['-batch', '-'], { netns: namespace.path, input: `${commands.join('\n')}\n` });
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
