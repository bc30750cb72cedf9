import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiNode, apiService, apiSlice, FakeApiServer } from '../test/fakes/api-server/index.ts';
import { type Agent, createLab, type LabNode } from '../test/lab/lab.ts';
import { sampleAddress } from './cluster.ts';
import { withinNamespace } from './within-namespace.ts';

const ENDPOINTS = 10;

/** A node, and an API server that holds a cluster for it. */
export interface ApiCluster {
  readonly node: LabNode;
  readonly kubeconfig: string;
  /** Gives all endpoints of Service number `n` other addresses; generation 0 is what it starts with. */
  change(n: number, generation: number): void;
  /** Forgets what a watch that breaks would need to go on; otherwise this process grows with every change. */
  compact(): void;
}

/**
 * Runs `work` in the namespace of a node, next to an API server with so many Services of ten endpoints.
 *
 * @param latencyMs how late its answers begin. @default 0
 */
export async function withApiCluster(
  services: number,
  work: (cluster: ApiCluster) => Promise<void>,
  latencyMs = 0,
): Promise<void> {
  const lab = createLab();
  // Not one of the nodes that `apiSlice` places endpoints on: no node runs a fifth of all pods.
  const node = lab.addNode({ name: 'bench-node' });
  await withinNamespace(node.namespace.path, async () => {
    const api = new FakeApiServer();
    api.misbehave.latencyMs = latencyMs;
    await api.start();
    const change = (n: number, generation: number) =>
      api.apply(apiSlice(`bench/service-${n}`, endpoints(n, generation)));
    api.apply(apiNode(node.name, node.ip()));
    for (let n = 0; n < services; n++) {
      const clusterIP = sampleAddress(96, n);
      api.apply(apiService(`bench/service-${n}`, { spec: { clusterIP, clusterIPs: [clusterIP] } }));
      change(n, 0);
    }
    api.encodeAhead();
    const kubeconfig = join(lab.folder, 'kubeconfig');
    api.writeKubeconfig(kubeconfig);
    try {
      await work({ node, kubeconfig, change, compact: () => api.compact() });
    } finally {
      await api.stop();
    }
  });
}

/** A sync, as the log tells it. */
export interface LoggedSync {
  /** Milliseconds since the epoch. */
  readonly endedAt: number;
  readonly kernelMs: number;
}

/** The syncs of IPv4 that wrote something. */
export function syncs(agent: Agent, full: boolean): LoggedSync[] {
  return agent
    .logs()
    .filter((line) => line.msg === 'Synced' && line.family === 'IPv4' && line.full === full)
    .map((line) => ({ endedAt: Date.parse(String(line.time)), kernelMs: Number(line.kernelSeconds) * 1000 }));
}

export function residentMiB(agent: Agent): number {
  return memoryMiB(agent, 'VmRSS');
}

/** The most it ever was. */
export function peakResidentMiB(agent: Agent): number {
  return memoryMiB(agent, 'VmHWM');
}

function memoryMiB(agent: Agent, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${agent.pid}/status`, 'utf8');
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)![1]) / 1024;
}

/** Ten addresses that differ within a Service, and between its generations: 10.200.0.0 to 10.239.255.255. */
function endpoints(service: number, generation: number): string[] {
  return Array.from({ length: ENDPOINTS }, (_, index) => {
    const n = service * 16 + index;
    return `10.${200 + (generation % 10) * 4 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
  });
}
