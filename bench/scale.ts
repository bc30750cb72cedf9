import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { programName } from '../src/proxy/rules/index.ts';
import { enterNetns, exec } from '../src/sys/index.ts';
import { apiNode, apiService, apiSlice, FakeApiServer } from '../test/fakes/api-server/index.ts';
import { type Agent, createLab } from '../test/lab/lab.ts';
import { sampleAddress, samplePorts } from './cluster.ts';
import { median, report } from './report.ts';
import { upstreamLayout } from './upstream-layout.ts';

const SERVICES = 5000;
const ENDPOINTS = 10;
const CHANGES = 7;
const VARIANT = 'legacy';

/**
 * The whole program against an API server of N Services of ten endpoints: start to first sync (lists included), one
 * endpoint changed (API event to committed), resident memory. The peer is what kube-proxy cannot avoid: one
 * iptables-restore of its own layout, without the proxy around it; for memory, what the real kube-proxy 1.36.2 took in
 * the same situation (147 to 212 MiB at 5,000 x 10).
 */
export async function benchScale(): Promise<void> {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  enterNetns(node.namespace.path);
  const api = new FakeApiServer();
  await api.start();
  api.apply(apiNode('node-1', node.ip()));
  for (let n = 0; n < SERVICES; n++) {
    const clusterIP = sampleAddress(96, n);
    api.apply(
      apiService(`bench/service-${n}`, { spec: { clusterIP, clusterIPs: [clusterIP] } }),
      apiSlice(`bench/service-${n}`, endpoints(n, 0)),
    );
  }
  const kubeconfig = join(lab.folder, 'kubeconfig');
  api.writeKubeconfig(kubeconfig);

  const startedAt = Date.now();
  const flags = ['--kubeconfig', kubeconfig, '--iptables-min-sync-period', '0s', '--iptables-variant', VARIANT];
  const agent = await node.startAgent({ flags });
  const firstSync = syncs(agent, true)[0]! - startedAt;
  await delay(2000);
  const residentMiB = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent.pid}/status`, 'utf8'))![1]) / 1024;

  const changes: number[] = [];
  for (let change = 1; change <= CHANGES; change++) {
    const before = syncs(agent, false).length;
    const changedAt = Date.now();
    api.apply(apiSlice('bench/service-7', endpoints(7, change)));
    while (syncs(agent, false).length === before) await delay(10);
    changes.push(syncs(agent, false).at(-1)! - changedAt);
    await delay(200);
  }
  await agent.stop();
  await api.stop();

  const input = upstreamLayout(samplePorts(SERVICES, ENDPOINTS));
  const restoreStart = performance.now();
  const restored = await exec(programName('IPv4', VARIANT, 'restore'), ['--noflush'], { input, timeoutMs: 600_000 });
  if (restored.status !== 0) throw new Error(restored.stderr);
  const restore = performance.now() - restoreStart;
  report(`scale, ${SERVICES} x ${ENDPOINTS}, ${VARIANT}`, [
    {
      what: 'start to first sync',
      unit: 'ms',
      ours: firstSync,
      peer: restore,
      peerName: 'restore of upstream’s layout',
    },
    {
      what: 'one endpoint changed',
      unit: 'ms',
      ours: median(changes),
      peer: restore,
      peerName: 'restore of upstream’s layout',
    },
    {
      what: 'resident memory',
      unit: 'MiB',
      ours: residentMiB,
      peer: 173,
      peerName: 'kube-proxy 1.36.2, measured elsewhere',
    },
  ]);
}

/** When syncs of IPv4 that wrote something ended, in milliseconds since the epoch. */
function syncs(agent: Agent, full: boolean): number[] {
  return agent
    .logs()
    .filter((line) => line.msg === 'Synced' && line.family === 'IPv4' && line.full === full)
    .map((line) => Date.parse(String(line.time)));
}

function endpoints(service: number, generation: number): string[] {
  return Array.from(
    { length: ENDPOINTS },
    (_, n) => `10.${200 + generation}.${service >> 5}.${(service & 31) * 8 + (n % 8) + 1}`,
  );
}
