import { setTimeout as delay } from 'node:timers/promises';
import { programName } from '../src/proxy/rules/index.ts';
import { exec } from '../src/sys/index.ts';
import { useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import { type ApiCluster, residentMiB, syncs, withApiCluster } from './api-cluster.ts';
import { samplePorts } from './cluster.ts';
import { type Figure, HOLDS_THE_LINE, inTurns, median, oursAtMost, ratioAtMost, report } from './report/index.ts';
import { upstreamLayout } from './upstream-layout.ts';

const ENDPOINTS = 10;
const CHANGES = 7;
const VARIANT = 'legacy';

/** What the whole program needed, in milliseconds and MiB, and how much of it was the kernel's part. */
interface Measured {
  readonly firstSync: number;
  readonly firstSyncKernel: number;
  readonly change: readonly number[];
  readonly changeKernel: readonly number[];
  readonly resident: number;
}

/**
 * The whole program against an API server of 5,000 Services of ten endpoints: start to first sync (lists included), one
 * Service's endpoints changed (API event to committed), resident memory. The peer is what kube-proxy cannot avoid: one
 * iptables-restore of its own layout, without the proxy around it; memory has no peer here.
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
      {
        what: 'start to first sync',
        unit: 'ms',
        ours: measured.firstSync,
        ...peer,
        target: ratioAtMost(3, HOLDS_THE_LINE),
      },
      {
        what: 'one Service changed',
        unit: 'ms',
        ours: median(measured.change),
        ...peer,
        target: ratioAtMost(0.5, HOLDS_THE_LINE),
      },
      residentMemory(measured, 200),
    ]);
  });
}

/** The same in mode nftables, for 10,000 Services; the peer is the kernel's part of these very syncs. */
export function benchScaleNftables(): Promise<void> {
  const services = 10_000;
  return withApiCluster(services, async (cluster) => {
    const measured = await measure(cluster, ['--proxy-mode', 'nftables']);
    const { firstSync, firstSyncKernel, change, changeKernel } = measured;
    const peerName = 'the kernel’s part of it';
    report(`scale, ${services} x ${ENDPOINTS}, nftables`, [
      {
        what: 'start to first sync',
        unit: 'ms',
        ours: firstSync,
        peer: firstSyncKernel,
        peerName,
        target: ratioAtMost(20, HOLDS_THE_LINE),
      },
      { what: 'one Service changed', unit: 'ms', ...inTurns(change, changeKernel), peerName },
      residentMemory(measured, 250),
    ]);
  });
}

function residentMemory({ resident }: Measured, atMost: number): Figure {
  return {
    what: 'resident memory',
    unit: 'MiB',
    ours: resident,
    peer: undefined,
    peerName: '',
    target: oursAtMost(atMost, HOLDS_THE_LINE),
  };
}

async function measure({ node, kubeconfig, change }: ApiCluster, flags: readonly string[]): Promise<Measured> {
  const startedAt = Date.now();
  const common = ['--kubeconfig', kubeconfig, '--iptables-min-sync-period', '0s'];
  const agent = await node.startAgent({ flags: [...common, ...flags] });
  const first = syncs(agent, true)[0]!;
  await delay(2000);
  const resident = residentMiB(agent);

  const changes: { readonly ms: number; readonly kernelMs: number }[] = [];
  for (let generation = 1; generation <= CHANGES; generation++) {
    const before = syncs(agent, false).length;
    const changedAt = Date.now();
    change(7, generation);
    while (syncs(agent, false).length === before) await delay(10);
    const { endedAt, kernelMs } = syncs(agent, false).at(-1)!;
    changes.push({ ms: endedAt - changedAt, kernelMs });
    await delay(200);
  }
  await agent.stop();
  return {
    firstSync: first.endedAt - startedAt,
    firstSyncKernel: first.kernelMs,
    change: changes.map(({ ms }) => ms),
    changeKernel: changes.map(({ kernelMs }) => kernelMs),
    resident,
  };
}
