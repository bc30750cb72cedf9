import { formatIp } from '../src/core/index.ts';
import type { ServicePortPlan } from '../src/proxy/index.ts';
import { useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import { createFolder } from '../test/lab/namespace.ts';
import { sampleService } from './cluster.ts';
import { connectRunner, type Destination, type Flow, type RunConnects } from './connects.ts';
import {
  createNodePath,
  type LoadServices,
  loadIptables,
  loadNftables,
  loadUpstreamIptables,
  loadUpstreamNftables,
  NODE_IP,
} from './packet-nodes.ts';
import { type Figure, HOLDS_THE_LINE, median, pairedTurns, ratioAtMost, report, type Target } from './report/index.ts';

interface Mode {
  readonly ours: LoadServices;
  readonly upstream: LoadServices;
  /** What connections to a few of the most Services may cost, as a part of what they cost among the fewest. */
  readonly few: Target;
}

const MODES: Readonly<Record<string, Mode>> = {
  nftables: {
    ours: loadNftables,
    upstream: loadUpstreamNftables,
    few: ratioAtMost(1 / 0.97),
  },
  'iptables-legacy': {
    ours: loadIptables('legacy'),
    upstream: loadUpstreamIptables('legacy'),
    few: ratioAtMost(1.1, HOLDS_THE_LINE),
  },
  'iptables-nft': {
    ours: loadIptables('nft'),
    upstream: loadUpstreamIptables('nft'),
    few: ratioAtMost(1.1, HOLDS_THE_LINE),
  },
};
const SIZES = [10, 1000, 10_000];
/** iptables-nft takes longer to load 10,000 Services than all the rest of the run: it does when it is named. */
const SLOW = { mode: 'iptables-nft', sizes: [10, 1000] };
const KINDS = ['TCP to ClusterIP', 'UDP to ClusterIP', 'TCP to NodePort', 'UDP to NodePort'] as const;
type Kind = (typeof KINDS)[number];
const PROTOCOLS = ['TCP', 'UDP'] as const;
/** As many Services have a NodePort as the range of them holds. */
const NODE_PORTS = { first: 30_000, count: 2768 };
/** As many as ten Services have of a protocol. */
const FEW = 5;
const ROUNDS = { rounds: 300, warmUp: 10, each: 20 };

/**
 * What a new connection costs by mode, by the number of Services, by TCP and UDP, to ClusterIPs and NodePorts, from a pod
 * through its node to an endpoint on another one; beside kube-proxy's layout, and beside no rules at all. All flows of a
 * mode take turns of 20 connections, so that what disturbs the machine disturbs all.
 *
 * @param only a mode
 */
export async function benchPackets(only = ''): Promise<void> {
  useOwnLockFile();
  const run = connectRunner(createFolder('connects').path);
  for (const [name, mode] of Object.entries(MODES)) {
    const sizes = name === SLOW.mode && name !== only ? SLOW.sizes : SIZES;
    if (name.startsWith(only)) report(`packets, ${name}`, await benchMode(mode, sizes, run));
  }
}

async function benchMode({ ours, upstream, few }: Mode, sizes: readonly number[], run: RunConnects): Promise<Figure[]> {
  const flows = new Map<string, Flow>();
  const bare = createNodePath('bare');
  const paths = [bare];
  for (const size of sizes) {
    const ports = services(size);
    const [own, peer] = [createNodePath(`ours-${size}`), createNodePath(`upstream-${size}`)];
    paths.push(own, peer);
    await Promise.all([ours(own.node, ports), upstream(peer.node, ports)]);
    for (const kind of KINDS) {
      const destinations = destinationsOf(ports, kind);
      const protocol = protocolOf(kind);
      flows.set(`ours ${size} ${kind}`, { path: own, protocol, destinations });
      flows.set(`upstream ${size} ${kind}`, { path: peer, protocol, destinations });
      flows.set(`few ${size} ${kind}`, { path: own, protocol, destinations: destinations.slice(0, FEW) });
    }
    for (const protocol of PROTOCOLS) {
      flows.set(`bare ${size} ${protocol}`, { path: bare, protocol, destinations: endpointsOf(ports, protocol) });
    }
  }
  const measured = await run([...flows.values()], ROUNDS);
  for (const { client, node, server } of paths) for (const namespace of [client, node, server]) namespace.remove();
  const names = [...flows.keys()];
  const turns = (name: string) => measured[names.indexOf(name)]!.map(costOf);
  const figure = (what: string, one: string, other: string, peerName: string, target?: Target): Figure => ({
    what,
    unit: 'us',
    ...pairedTurns(turns(one), turns(other)),
    peerName,
    ...(target && { target }),
  });
  const [least, most] = [sizes[0]!, sizes.at(-1)!];
  const among = `among ${least}`;
  const added = (layout: string, kind: Kind) => {
    const fewest = turns(`${layout} ${least} ${kind}`);
    return turns(`${layout} ${most} ${kind}`).map((cost, turn) => cost - fewest[turn]!);
  };
  return [
    ...sizes.flatMap((size) =>
      KINDS.map((kind) => {
        const target = ratioAtMost(size === least ? 1.05 : 1, HOLDS_THE_LINE);
        const names = [`ours ${size} ${kind}`, `upstream ${size} ${kind}`] as const;
        return figure(`${kind}, ${size} Services`, ...names, 'upstream’s layout', target);
      }),
    ),
    ...KINDS.map((kind) =>
      figure(`${kind}, ${FEW} of ${most}`, `few ${most} ${kind}`, `few ${least} ${kind}`, among, few),
    ),
    // How much dearer they are when they are spread over all is for the processor to say, with the size of its caches and
    // its distance from the memory: the same two microseconds were a twelfth of a connection on one and a third on another.
    // Both layouts meet the same processor.
    ...KINDS.map((kind) => figure(`${kind}, all of ${most}`, `ours ${most} ${kind}`, `ours ${least} ${kind}`, among)),
    ...KINDS.map(
      (kind): Figure => ({
        what: `${kind}, what all of ${most} add to it`,
        unit: 'us',
        ...pairedTurns(added('ours', kind), added('upstream', kind)),
        peerName: 'upstream’s layout',
        target: ratioAtMost(1, HOLDS_THE_LINE),
      }),
    ),
    // What so many addresses cost the kernel anyway.
    ...PROTOCOLS.map((protocol) =>
      figure(
        `${protocol}, no rules, ${most / 2} addresses`,
        `bare ${most} ${protocol}`,
        `bare ${least} ${protocol}`,
        `${least / 2} addresses`,
      ),
    ),
    ...PROTOCOLS.map((protocol) =>
      figure(
        `${protocol} to ClusterIP, ${least} Services`,
        `ours ${least} ${protocol} to ClusterIP`,
        `bare ${least} ${protocol}`,
        'no rules, straight to the endpoint',
      ),
    ),
  ];
}

/** Half of them by TCP, half by UDP, one endpoint each. */
function services(count: number): ServicePortPlan[] {
  return Array.from({ length: count }, (_, n) =>
    sampleService(n, 1, {
      protocol: PROTOCOLS[n % 2]!,
      ...(n < NODE_PORTS.count && { nodePort: NODE_PORTS.first + n }),
    }),
  );
}

/** In an order by lot: neighbours in memory are not asked for one after the other. */
function destinationsOf(ports: readonly ServicePortPlan[], kind: Kind): Destination[] {
  const some = shuffled(ports.filter(({ protocol }) => protocol === protocolOf(kind)));
  return kind.endsWith('ClusterIP')
    ? some.map(({ clusterIp, port }) => ({ ip: formatIp(clusterIp), port }))
    : some.filter(({ nodePort }) => nodePort > 0).map(({ nodePort }) => ({ ip: NODE_IP, port: nodePort }));
}

function endpointsOf(ports: readonly ServicePortPlan[], which: Flow['protocol']): Destination[] {
  const some = shuffled(ports.filter(({ protocol }) => protocol === which));
  return some.flatMap(({ clusterEndpoints }) => clusterEndpoints.map(({ ip, port }) => ({ ip: formatIp(ip), port })));
}

function protocolOf(kind: Kind): Flow['protocol'] {
  return kind.startsWith('TCP') ? 'TCP' : 'UDP';
}

/** The first connections of a turn bring rules into the processor's caches that the turn of another has driven out. */
function costOf(turn: readonly number[]): number {
  return median(turn.slice(FEW));
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, lot: Math.random() }))
    .sort((a, b) => a.lot - b.lot)
    .map(({ item }) => item);
}
