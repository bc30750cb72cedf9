import { setTimeout as delay } from 'node:timers/promises';
import { programName } from '../src/proxy/rules/index.ts';
import { exec } from '../src/sys/index.ts';
import { useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import { residentMiB, syncTimes, withApiCluster } from './api-cluster.ts';
import { samplePorts } from './cluster.ts';
import { median, report } from './report.ts';
import { upstreamLayout } from './upstream-layout.ts';

const SERVICES = 5000;
const ENDPOINTS = 10;
const CHANGES = 7;
const VARIANT = 'legacy';

/**
 * The whole program against an API server of N Services of ten endpoints: start to first sync (lists included), one
 * Service's endpoints changed (API event to committed), resident memory. The peer is what kube-proxy cannot avoid: one
 * iptables-restore of its own layout, without the proxy around it; for memory, what the real kube-proxy 1.36.2 took in
 * the same situation (147 to 212 MiB at 5,000 x 10).
 */
export function benchScale(): Promise<void> {
  useOwnLockFile();
  return withApiCluster(SERVICES, async ({ node, kubeconfig, change }) => {
    const startedAt = Date.now();
    const flags = ['--kubeconfig', kubeconfig, '--iptables-min-sync-period', '0s', '--iptables-variant', VARIANT];
    const agent = await node.startAgent({ flags });
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

    const input = upstreamLayout(samplePorts(SERVICES, ENDPOINTS));
    const restoreStart = performance.now();
    const restored = await exec(programName('IPv4', VARIANT, 'restore'), ['--noflush'], { input, timeoutMs: 600_000 });
    if (restored.status !== 0) throw new Error(restored.stderr);
    const restore = performance.now() - restoreStart;
    const peer = { peer: restore, peerName: 'restore of upstream’s layout' };
    report(`scale, ${SERVICES} x ${ENDPOINTS}, ${VARIANT}`, [
      { what: 'start to first sync', unit: 'ms', ours: firstSync, ...peer },
      { what: 'one Service changed', unit: 'ms', ours: median(changes), ...peer },
      {
        ...{ what: 'resident memory', unit: 'MiB', ours: resident, target: 'at most 200 MiB' },
        ...{ peer: 173, peerName: 'kube-proxy 1.36.2, measured elsewhere' },
      },
    ]);
  });
}
