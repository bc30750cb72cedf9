import { setTimeout as delay } from 'node:timers/promises';
import { type ApiCluster, syncs, withApiCluster } from './api-cluster.ts';
import { type Figure, inTurns, median, report } from './report/index.ts';
import { firstSync, processorTimes } from './start/index.ts';

const SERVICES = 20;
/** How late the answers of the API server begin: etcd's read on a quiet network, and the server around it. */
const LATENCY_MS = 5;
const CHANGE_EVERY_MS = 500;
/** The last change is in the kernel then: longer than the least interval between two syncs. */
const SETTLED_MS = 2000;

const CASES = ['nftables', 'iptables-nft', 'iptables-legacy'] as const;

/** What an agent took, in milliseconds of processor time, and did. */
interface MeasuredChurn {
  readonly untilFirstSync: number;
  readonly afterwards: number;
  /** Of both: the programs it ran. */
  readonly programs: number;
  readonly syncs: number;
}

/**
 * Processor time of the built kube-proxy, with the programs it runs, while a cluster of 20 Services of ten endpoints changes: twice
 * a second one Service gets ten other endpoints. Its start included, against an API server whose answers begin 5 ms late.
 *
 * @param words how many seconds of changes there are (180), what the name of a mode must hold (nft), and the folder of another
 *   build, which is measured by turns as the peer (/tmp/before): any of them, with colons between. @default 60 s, all modes, no peer
 */
export async function benchChurn(words = ''): Promise<void> {
  const given = words.split(':').filter(Boolean);
  const seconds = Number(given.find((word) => /^\d+$/.test(word)) ?? 60);
  const other = given.find((word) => word.includes('/'));
  const only = given.find((word) => !/^\d+$/.test(word) && word !== other) ?? '';
  for (const name of CASES) {
    if (!name.includes(only)) continue;
    await withApiCluster(SERVICES, (cluster) => reportChurn(cluster, name, seconds, other), LATENCY_MS);
  }
}

async function reportChurn(
  cluster: ApiCluster,
  name: (typeof CASES)[number],
  seconds: number,
  other: string | undefined,
): Promise<void> {
  const variant = /^iptables-(.*)/.exec(name)?.[1];
  // The kubelet's hint; kube-proxy's command line knows no variants.
  if (variant) cluster.node.namespace.run(`iptables-${variant}`, '-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT');
  const mode = variant ? 'iptables' : name;
  const ours: MeasuredChurn[] = [];
  const peers: MeasuredChurn[] = [];
  for (let round = 0; round < (other === undefined ? 1 : 3); round++) {
    if (other !== undefined) peers.push(await measureChurn(cluster, mode, seconds, other));
    ours.push(await measureChurn(cluster, mode, seconds, undefined));
  }
  const figure = (what: string, unit: string, value: (run: MeasuredChurn) => number): Figure => {
    const [mine, theirs] = [ours.map(value), peers.map(value)];
    const figures = theirs.length > 0 ? inTurns(mine, theirs) : { ours: median(mine), peer: undefined };
    return { what, unit, ...figures, peerName: 'the other build' };
  };
  report(`churn, ${SERVICES} x 10, ${seconds} s, ${name}`, [
    figure('processor time, start included', 'ms', ({ untilFirstSync, afterwards }) => untilFirstSync + afterwards),
    figure('of it, until the first sync', 'ms', ({ untilFirstSync }) => untilFirstSync),
    // Mode nftables runs none.
    ...(variant ? [figure('of it, programs', 'ms', ({ programs }) => programs)] : []),
    figure('syncs after the first', '', (run) => run.syncs),
    figure('processor time for each of these', 'ms', (run) => run.afterwards / run.syncs),
  ]);
}

/** From the start of an agent that finds nothing of ours in the kernel until the last change is in it. */
async function measureChurn(
  { node, kubeconfig, change, compact }: ApiCluster,
  mode: string,
  seconds: number,
  build: string | undefined,
): Promise<MeasuredChurn> {
  const common = { program: 'kube-proxy', until: 'started', ...(build !== undefined && { build }) } as const;
  const began = Date.now();
  const flags = ['--kubeconfig', kubeconfig, '--proxy-mode', mode];
  const agent = await node.startAgent({ ...common, flags, log: `churn-${began}` });
  await firstSync(agent);
  const start = processorTimes(agent.pid);
  // Due at times that do not shift with what the changes take: every run has as many.
  for (let n = 0, due = performance.now(); n < (seconds * 1000) / CHANGE_EVERY_MS; n++) {
    due += CHANGE_EVERY_MS;
    await delay(due - performance.now());
    change(n % SERVICES, 1 + Math.floor(n / SERVICES));
  }
  await delay(SETTLED_MS);
  const end = processorTimes(agent.pid);
  const made = syncs(agent, false).length;
  await agent.stop();
  compact();
  // What the next one finds is what this one found.
  for (let n = 0; n < SERVICES; n++) change(n, 0);
  const { ended } = await node.startAgent({ ...common, flags: ['--cleanup'], log: `churn-cleanup-${began}` });
  if ((await ended) !== 0) throw new Error('The rules of the agent cannot be removed');
  const untilFirstSync = start.own + start.programs;
  return {
    untilFirstSync,
    afterwards: end.own + end.programs - untilFirstSync,
    programs: end.programs,
    syncs: made,
  };
}
