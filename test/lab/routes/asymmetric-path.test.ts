import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Host, type LabNode, type Pod, removeAll } from '../lab.ts';
import { type Cluster, createCluster, FAMILIES, POD_PORT, wayTo } from './cluster.ts';

// A request that comes by one interface, and its answer that leaves by another. IPv4's reverse path filter
// (net.ipv4.conf.*.rp_filter) may drop either: strict (1) where the way back to the sender is another interface, loose (2)
// only where there is no way back at all. IPv6 has none.

const FILTERS = { off: 0, loose: 2, strict: 1 } as const;
const SILENCE_MS = 500;

let cluster: Cluster;
let [one, two]: LabNode[] = [];
let [pod1, pod2]: Pod[] = [];

beforeAll(async () => {
  cluster = await createCluster();
  [one, two] = cluster.nodes;
  [pod1, pod2] = cluster.pods;
  await one!.serve({ port: POD_PORT });
  await cluster.start('--routes', 'vxlan');
});
afterAll(async () => {
  await cluster.stop();
  removeAll();
});

/** The kernel takes the larger of this and the interface's own, which the lab has set to 0. */
function setFilter(filter: keyof typeof FILTERS): void {
  for (const { namespace } of [one!, two!]) {
    namespace.run('sysctl', '-qw', `net.ipv4.conf.all.rp_filter=${FILTERS[filter]}`);
  }
}

const ask = async (from: Host, to: Host, family: 'IPv4' | 'IPv6', timeoutMs: number) =>
  (await from.connect({ ip: to.ip(family), port: POD_PORT }, { timeoutMs })).kind;

/** Checks what comes of connections in both families under each filter. */
function check(path: () => readonly [Host, Host], strict: 'answered' | 'timeout'): void {
  it.each(['off', 'loose', 'strict'] as const)('rp_filter %s', async (filter) => {
    setFilter(filter);
    const [from, to] = path();
    await expect.poll(() => ask(from, to, 'IPv6', 1000)).toBe('answered');
    if (filter === 'strict' && strict === 'timeout') expect(await ask(from, to, 'IPv4', SILENCE_MS)).toBe('timeout');
    else await expect.poll(() => ask(from, to, 'IPv4', 1000)).toBe('answered');
  });
}

describe('pod to pod, through the tunnel both ways', () => {
  check(() => [pod1!, pod2!], 'answered');
});

describe('pod to the address of another node: under its own node’s address, so that request and answer take one way', () => {
  check(() => [pod2!, one!], 'answered');
});

describe('pod to pod between --routes auto and --routes vxlan: the answer takes the tunnel, the request did not', () => {
  it('is what happens while the mode is changed node after node', async () => {
    setFilter('off');
    await cluster.restart(one!, { by: 'SIGTERM', flags: ['--routes', 'auto'] });
    for (const family of FAMILIES) {
      await expect.poll(() => wayTo(one!, pod2!, family)).toBe('eth0');
      expect(wayTo(two!, pod1!, family)).toContain('nodeplane');
    }
  });
  check(() => [pod1!, pod2!], 'timeout');
});
