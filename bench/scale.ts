import { setTimeout as delay } from 'node:timers/promises';
import { programName } from '../src/proxy/rules/index.ts';
import { exec } from '../src/sys/index.ts';
import { useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import { type ApiCluster, residentMiB, syncTimes, withApiCluster } from './api-cluster.ts';
import { samplePorts } from './cluster.ts';
import { median, report } from './report.ts';
import { upstreamLayout } from './upstream-layout.ts';

const ENDPOINTS = 10;
const CHANGES = 7;
const VARIANT = 'legacy';

/** What the whole program needed, in milliseconds and MiB. */
interface Measured {
  readonly firstSync: number;
  readonly change: number;
  readonly resident: number;
}

/**
 * The whole program against an API server of 5,000 Services of ten endpoints: start to first sync (lists included), one
 * Service's endpoints changed (API event to committed), resident memory. The peer is what kube-proxy cannot avoid: one
 * iptables-restore of its own layout, without the proxy around it; for memory, what the real kube-proxy 1.36.2 took in
 * the same situation (147 to 212 MiB).
 */
export function benchScale(): Promise<void> {
  const services = 5000;
  useOwnLockFile();
  return withApiCluster(services, async (cluster) => {
    const measured = await measure(cluster, ['--iptables-variant', VARIANT]);
    const input = upstreamLayout(samplePorts(services, ENDPOINTS));
    const restoreStart = performance.now();
    const restored = await exec(programName('IPv4', VARIANT, 'restore'), ['--noflush'], { input, timeoutMs: 600_000 });
    if (restored.status !== 0) throw new Error(restored.stderr);
    const restore = performance.now() - restoreStart;
    const peer = { peer: restore, peerName: 'restore of upstream’s layout' };
    report(`scale, ${services} x ${ENDPOINTS}, ${VARIANT}`, [
      { what: 'start to first sync', unit: 'ms', ours: measured.firstSync, ...peer },
      { what: 'one Service changed', unit: 'ms', ours: measured.change, ...peer },
      {
        ...{ what: 'resident memory', unit: 'MiB', ours: measured.resident, target: 'at most 200 MiB' },
        ...{ peer: 173, peerName: 'kube-proxy 1.36.2, measured elsewhere' },
      },
    ]);
  });
}

/** The same in mode nftables, for 10,000 Services; the peers are what the real kube-proxy 1.36.2 needed elsewhere. */
export function benchScaleNftables(): Promise<void> {
  const services = 10_000;
  return withApiCluster(services, async (cluster) => {
    const measured = await measure(cluster, ['--proxy-mode', 'nftables']);
    const peerName = 'kube-proxy 1.36.2, measured elsewhere';
    const figure = { unit: 'ms', peerName };
    report(`scale, ${services} x ${ENDPOINTS}, nftables`, [
      {
        ...{ ...figure, what: 'start to first sync', ours: measured.firstSync, peer: 14_900 },
        target: 'at most 0.15 x',
      },
      { ...figure, what: 'one Service changed', ours: measured.change, peer: 4380 },
      { what: 'resident memory', unit: 'MiB', ours: measured.resident, peer: 248, peerName },
    ]);
  });
}

async function measure({ node, kubeconfig, change }: ApiCluster, flags: readonly string[]): Promise<Measured> {
  const startedAt = Date.now();
  const common = ['--kubeconfig', kubeconfig, '--iptables-min-sync-period', '0s'];
  const agent = await node.startAgent({ flags: [...common, ...flags] });
  const firstSync = syncTimes(agent, true)[0]! - startedAt;
  await delay(2000);
  const resident = residentMiB(agent);

  const changes: number[] = [];
  for (let generation = 1; generation <= CHANGES; generation++) {
    const before = syncTimes(agent, false).length;
    const changedAt = Date.now();
    change(7, generation);
    while (syncTimes(agent, false).length === before) await delay(10);
    changes.push(syncTimes(agent, false).at(-1)! - changedAt);
    await delay(200);
  }
  await agent.stop();
  return { firstSync, change: median(changes), resident };
}
