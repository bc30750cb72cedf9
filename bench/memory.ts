import { setTimeout as delay } from 'node:timers/promises';
import type { Agent } from '../test/lab/lab.ts';
import { type ApiCluster, peakResidentMiB, residentMiB, syncs, withApiCluster } from './api-cluster.ts';
import { memoryOwners } from './memory-owners.ts';
import { type Figure, HOLDS_THE_LINE, oursAtMost, ratioAtMost, report, type Target } from './report/index.ts';

const SERVICES = 10_000;
const FEW_SERVICES = 10;
/** Made twice: what the second half adds is growth, what the first adds may be the young heap finding its size. */
const CHANGES_PER_HALF = 50_000;
const BURST = 500;
const PAUSE_MS = 300;
/** Longer than the default least interval between syncs. */
const QUIET_MS = 3000;

/** Resident memory of the built kube-proxy: whose it is in a small cluster and in a large one, and how it grows there. */
export async function benchMemory(): Promise<void> {
  await withApiCluster(FEW_SERVICES, async (cluster) => {
    const agent = await startAtRest(cluster);
    report(`memory by owner, ${FEW_SERVICES} x 10, legacy`, await memoryOwners(agent));
    await agent.stop();
  });
  await withApiCluster(SERVICES, growth);
}

async function startAtRest({ node, kubeconfig }: ApiCluster): Promise<Agent> {
  // The kubelet's hint; kube-proxy's command line knows no variants.
  node.namespace.run('iptables-legacy', '-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT');
  const agent = await node.startAgent({ program: 'kube-proxy', flags: ['--kubeconfig', kubeconfig] });
  await delay(QUIET_MS);
  return agent;
}

/**
 * At 10,000 Services of ten endpoints, and after 100,000 slice updates in
 * bursts. The peer of what came later is the program itself before; the rest has none.
 */
async function growth(cluster: ApiCluster): Promise<void> {
  const agent = await startAtRest(cluster);
  report(`memory by owner, ${SERVICES} x 10, legacy`, await memoryOwners(agent));
  const start = residentMiB(agent);
  const afterHalf = await changeInBursts(cluster, agent, 0);
  const afterAll = await changeInBursts(cluster, agent, CHANGES_PER_HALF);
  const peak = peakResidentMiB(agent);
  await agent.stop();

  const figure = (what: string, ours: number, peer: number | undefined, peerName: string, target: Target): Figure => ({
    what,
    unit: 'MiB',
    ours,
    peer,
    peerName,
    target,
  });
  const [half, all] = [CHANGES_PER_HALF, 2 * CHANGES_PER_HALF];
  const afterChanges = (changes: number) => `resident after ${changes} changes`;
  report(`memory, ${SERVICES} x 10, legacy`, [
    figure('resident after the first sync', start, undefined, '', oursAtMost(300)),
    figure(afterChanges(half), afterHalf, start, 'after the first sync', ratioAtMost(1.4, HOLDS_THE_LINE)),
    figure(afterChanges(all), afterAll, afterHalf, `after ${half} changes`, ratioAtMost(1.05, 'no growth')),
    figure('most ever resident', peak, undefined, '', oursAtMost(440, HOLDS_THE_LINE)),
  ]);
}

/** Makes half of the changes, to one Service after the other, and waits until the agent is at rest. */
async function changeInBursts(cluster: ApiCluster, agent: Agent, begin: number): Promise<number> {
  const syncsBefore = syncs(agent, false).length;
  for (let done = begin; done < begin + CHANGES_PER_HALF; done += BURST) {
    for (let n = done; n < done + BURST; n++) cluster.change(n % SERVICES, 1 + Math.floor(n / SERVICES));
    await delay(PAUSE_MS);
    cluster.compact();
  }
  for (let before = -1, now = syncsBefore; now !== before || now === syncsBefore; ) {
    await delay(QUIET_MS);
    before = now;
    now = syncs(agent, false).length;
  }
  return residentMiB(agent);
}
