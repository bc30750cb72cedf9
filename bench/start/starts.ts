import { type ApiCluster, withApiCluster } from '../api-cluster.ts';
import { type Figure, inTurns, median, oursAtMost, report } from '../report/index.ts';
import { type MeasuredStart, measureStart } from './measured-start.ts';

/** How late the answers of the API server begin: etcd's read on a quiet network, and the server around it. */
const LATENCY_MS = 5;
const ROUNDS = 3;

/** What a start is to cost at most. */
interface StartCase {
  readonly mode: 'nftables' | 'iptables-legacy' | 'iptables-nft';
  readonly services: number;
  readonly processorMs?: number;
  readonly elapsedMs?: number;
  readonly peakMiB?: number;
  readonly restingMiB?: number;
}

/** No pause of the event loop is longer, also during a full sync. */
const LONGEST_PAUSE_MS = 20;

const CASES: readonly StartCase[] = [
  { mode: 'nftables', services: 10, restingMiB: 65 },
  { mode: 'nftables', services: 1000, processorMs: 800 },
  { mode: 'nftables', services: 10_000, elapsedMs: 2000, peakMiB: 220, restingMiB: 180 },
  { mode: 'iptables-legacy', services: 1000 },
  { mode: 'iptables-legacy', services: 5000 },
  { mode: 'iptables-nft', services: 1000 },
];

/**
 * The built kube-proxy from its start to its first sync, and fifteen seconds later, against an API server with Services of ten
 * endpoints whose answers begin 5 ms late. Processor time is the program's own, user and system, with the programs it runs.
 *
 * @param other the folder of another build, which is measured by turns as the peer. @default no peer
 */
export async function benchStart(other?: string): Promise<void> {
  for (const each of CASES) {
    await withApiCluster(each.services, async (cluster) => reportStarts(each, cluster, other), LATENCY_MS);
  }
}

async function reportStarts(each: StartCase, cluster: ApiCluster, other: string | undefined): Promise<void> {
  const { mode, services } = each;
  // The kubelet's hint; kube-proxy's command line knows no variants.
  if (mode !== 'nftables') cluster.node.namespace.run(mode, '-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT');
  const flags = ['--proxy-mode', mode === 'nftables' ? mode : 'iptables'];
  const ours: MeasuredStart[] = [];
  const peers: MeasuredStart[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const untilRest = round === ROUNDS - 1;
    if (other !== undefined) peers.push(await measureStart(cluster, flags, { build: other, untilRest }));
    ours.push(await measureStart(cluster, flags, { build: undefined, untilRest }));
  }
  const figure = (what: string, unit: string, key: keyof MeasuredStart, atMost: number | undefined): Figure => {
    const values = (starts: readonly MeasuredStart[]) =>
      starts.map((start) => start[key]).filter((n) => n !== undefined);
    const peer =
      peers.length > 0 ? inTurns(values(ours), values(peers)) : { ours: median(values(ours)), peer: undefined };
    return {
      what,
      unit,
      ...peer,
      peerName: 'the other build',
      ...(atMost !== undefined && { target: oursAtMost(atMost) }),
    };
  };
  report(`start, ${services} x 10, ${mode}`, [
    figure('processor time until the first sync', 'ms', 'processorMs', each.processorMs),
    figure('elapsed time until then', 'ms', 'elapsedMs', each.elapsedMs),
    figure('of that in the kernel, for IPv4', 'ms', 'kernelMs', undefined),
    figure('most resident until then', 'MiB', 'peakMiB', each.peakMiB),
    figure('resident 15 s later', 'MiB', 'restingMiB', each.restingMiB),
    figure('longest pause of the event loop, at most', 'ms', 'longestPauseMs', LONGEST_PAUSE_MS),
  ]);
}
