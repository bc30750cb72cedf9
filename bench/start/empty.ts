import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { LabNode } from '../../test/lab/lab.ts';
import { type ApiCluster, residentMiB, withApiCluster } from '../api-cluster.ts';
import { oursAtMost, report } from '../report/index.ts';
import { processorMs } from './process-figures.ts';

/** After the second time that memory is given back. */
const SETTLED_MS = 70_000;
/** More than two of the agent's checks of what is in the kernel. */
const WATCHED_MS = 300_000;
const READY_TIMEOUT_MS = 60_000;

/**
 * What the built agent costs in a cluster without Services, in mode nftables, alone and with `--cni`: until its probe of readiness
 * answers 200, resident a minute later, and processor time over five minutes. With the Node.js that runs this, which is first in PATH.
 *
 * @param only what the name of a case must hold. @default any
 */
export function benchEmpty(only = ''): Promise<void> {
  return withApiCluster(0, async (cluster) => {
    for (const [name, isCni, mostMiB] of [
      ['Services', false, 65],
      ['Services and CNI', true, 75],
    ] as const) {
      if (name.includes(only)) await measure(cluster, name, isCni, mostMiB);
    }
  });
}

async function measure({ node, kubeconfig }: ApiCluster, name: string, isCni: boolean, mostMiB: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'nodeplane-empty-'));
  const places = ['bin', 'conf', 'spool', 'data'].flatMap((kind) => {
    const path = join(folder, kind);
    mkdirSync(path);
    return [`--cni-${kind}-dir`, path];
  });
  places.push('--cni-socket', join(folder, 'cni.sock'));
  const flags = ['--kubeconfig', kubeconfig, '--proxy-mode', 'nftables', ...(isCni ? ['--cni', ...places] : [])];
  try {
    const began = performance.now();
    const agent = await node.startAgent({ until: 'started', flags, log: `empty-${isCni}` });
    await ready(node);
    const readyMs = performance.now() - began;
    await delay(SETTLED_MS);
    const residentNow = residentMiB(agent);
    const [before, watched] = [processorMs(agent.pid), performance.now()];
    await delay(WATCHED_MS);
    const share = ((processorMs(agent.pid) - before) / (performance.now() - watched)) * 100;
    await agent.stop();
    const row = { peer: undefined, peerName: '' };
    report(`empty cluster, ${name}, Node.js ${process.version}`, [
      { what: 'start to ready', unit: 'ms', ours: readyMs, ...row, target: oursAtMost(1200) },
      { what: 'resident', unit: 'MiB', ours: residentNow, ...row, target: oursAtMost(mostMiB) },
      { what: 'of a core, over five minutes', unit: '%', ours: share, ...row, target: oursAtMost(0.3) },
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function ready(node: LabNode): Promise<void> {
  for (const deadline = Date.now() + READY_TIMEOUT_MS; Date.now() < deadline; await delay(5)) {
    try {
      if ((await node.httpGet('http://127.0.0.1:10256/readyz')).status === 200) return;
    } catch {
      // Nobody listens yet.
    }
  }
  throw new Error(`The agent is not ready after ${READY_TIMEOUT_MS} ms`);
}
