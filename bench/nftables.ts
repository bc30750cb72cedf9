import type { CommitReport } from '../src/netlink/nftables/index.ts';
import type { NftablesDataplane } from '../src/proxy/nftables/index.ts';
import { execIn } from '../test/lab/iptables/fixtures.ts';
import { createNamespace, type TestNamespace } from '../test/lab/namespace.ts';
import { dataplaneIn, openIn, recorded } from '../test/lab/nftables/fixtures.ts';
import { sampleNode, samplePlan } from '../test/samples/sample-plan.ts';
import { ENDPOINTS, startProxy } from './changing-proxy.ts';
import { samplePorts } from './cluster.ts';
import {
  type Figure,
  HOLDS_THE_LINE,
  inTurns,
  median,
  oursAtMost,
  percentile,
  ratioAtMost,
  report,
} from './report/index.ts';
import { upstreamNftLayout } from './upstream-nft-layout.ts';

const MANY = 10_000;
const FEW = 100;
const FULL_SYNCS = 5;
const CHANGES = 1000;
/** Until the compiler has seen enough of the code to optimise it. */
const WARM_UP = 400;
const UPSTREAM_TIMEOUT_MS = 900_000;

/** The nftables dataplane: all Services at once, one endpoint at a time, and a restart. What packets notice: `packets`. */
export async function benchNftables(): Promise<void> {
  report(`nftables, ${MANY} x ${ENDPOINTS}`, [...(await fullSync()), await restart()]);
  report(`nftables, ${MANY} x ${ENDPOINTS}, ${CHANGES} changes`, await changes());
}

/**
 * A dataplane in a namespace of its own, and what its commits did. To be closed: while anybody listens to nf_tables, in
 * whatever namespace, each large transaction takes the kernel several times as long
 * (docs/decisions/0013-agent-start.md), and so would those of later benchmarks.
 */
function startDataplane(label: string, namespace: TestNamespace = createNamespace(label)) {
  const reports: CommitReport[] = [];
  const open = () => recorded(openIn(namespace), reports);
  const dataplane: NftablesDataplane = dataplaneIn(namespace, 'IPv4', { open, onForeignChange: () => {} });
  return { namespace, reports, dataplane };
}

async function fullSync(): Promise<Figure[]> {
  const ports = samplePorts(MANY, ENDPOINTS);
  const plan = samplePlan('IPv4', sampleNode(), ports);
  const took: number[] = [];
  const kernel: number[] = [];
  for (let round = 0; round < FULL_SYNCS; round++) {
    const { namespace, reports, dataplane } = startDataplane(`full-${round}`);
    took.push(await timed(() => dataplane.resync(plan)));
    kernel.push(reports[0]!.kernelSeconds * 1000);
    dataplane.close();
    namespace.remove();
  }
  const upstream = createNamespace('upstream');
  const input = upstreamNftLayout(ports);
  const load = await timed(async () => {
    const { status, stderr } = await execIn(upstream)('nft', ['-f', '-'], { input, timeoutMs: UPSTREAM_TIMEOUT_MS });
    if (status !== 0) throw new Error(`nft refused upstream's layout: ${stderr}`);
  });
  upstream.remove();
  const what = 'full sync, plan in memory';
  return [
    {
      what,
      unit: 'ms',
      ...inTurns(took, kernel),
      target: ratioAtMost(2),
      peerName: 'the kernel alone, same batch',
    },
    {
      what,
      unit: 'ms',
      ours: median(took),
      peer: load,
      target: ratioAtMost(0.1, HOLDS_THE_LINE),
      peerName: 'upstream’s layout by nft -f',
      headline: `All of ${MANY} Services, nftables`,
    },
  ];
}

/** How much a second agent writes when everything is right. */
async function restart(): Promise<Figure> {
  const plan = samplePlan('IPv4', sampleNode(), samplePorts(MANY, ENDPOINTS));
  const first = startDataplane('restart');
  const { objects: all } = await first.dataplane.resync(plan);
  first.dataplane.close();
  const again = startDataplane('restart', first.namespace);
  const { objects } = await again.dataplane.resync(plan);
  again.dataplane.close();
  const written = (of: typeof objects) => Object.values(of).reduce((sum, count) => sum + count.written, 0);
  return {
    what: 'restart, all right: objects written',
    unit: '',
    ours: written(objects),
    target: oursAtMost(50),
    peer: written(all),
    peerName: 'the first full sync',
  };
}

/** One endpoint of one Service replaced by another: event to acknowledgement, in turns at many Services and at few. */
async function changes(): Promise<Figure[]> {
  const start = async (services: number) => {
    const { reports, dataplane } = startDataplane(`changes-${services}`);
    return {
      reports,
      dataplane,
      proxy: await startProxy(services, dataplane),
      ms: [] as number[],
      messages: [] as number[],
    };
  };
  const [many, few] = [await start(MANY), await start(FEW)];
  for (let change = 0; change < WARM_UP + CHANGES; change++) {
    for (const side of [many, few]) {
      const ms = await side.proxy.changeOneEndpoint(change);
      if (change < WARM_UP) continue;
      side.ms.push(ms);
      side.messages.push(side.reports.at(-1)!.messages);
    }
  }
  for (const { proxy, dataplane } of [many, few]) {
    await proxy.stop();
    dataplane.close();
  }
  const peerName = `at ${FEW} Services`;
  const largest = (values: readonly number[]) => Math.max(...values);
  const figure = (percent: number): Figure => ({
    what: `event to acknowledgement, p${percent}`,
    unit: 'ms',
    ...inTurns(many.ms, few.ms, (values) => percentile(values, percent)),
    peerName,
  });
  return [
    {
      ...figure(50),
      target: ratioAtMost(1.3, 'goal 2 ms'),
      headline: `One endpoint changes among ${MANY} Services, nftables`,
    },
    figure(99),
    {
      what: 'netlink messages, most',
      unit: '',
      ours: largest(many.messages),
      peer: largest(few.messages),
      peerName,
      target: oursAtMost(8),
    },
  ];
}

async function timed(what: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await what();
  return performance.now() - started;
}
