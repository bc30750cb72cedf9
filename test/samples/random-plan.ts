import type { IpFamily } from '../../src/core/index.ts';
import type { PlanDelta, ServicePortPlan } from '../../src/proxy/index.ts';
import { type SamplePort, samplePort } from './sample-plan.ts';

/** Random numbers that are the same in every run (a linear congruential generator). */
export function seededRandom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/**
 * Yields `steps` random changes after making each in `ports`: Services come, go and change in every respect, and
 * sometimes want an address or NodePort another one has. Few enough that addresses and ports are met again.
 */
export function* randomChanges(
  family: IpFamily,
  steps: number,
  ports: Map<string, ServicePortPlan>,
  seed = 7,
): Generator<PlanDelta> {
  const random = seededRandom(seed);
  for (let step = 0; step < steps; step++) {
    const upserted = new Map<string, ServicePortPlan>();
    const removed = new Map<string, ServicePortPlan>();
    for (let i = random(3); i >= 0; i--) {
      const known = [...ports.values()].filter(({ key }) => !upserted.has(key));
      const victim = known[random(known.length)];
      if (victim && random(100) < 35) {
        ports.delete(victim.key);
        removed.set(victim.key, victim);
        continue;
      }
      const port = samplePort(randomPort(family, random));
      if (removed.has(port.key)) continue;
      ports.set(port.key, port);
      upserted.set(port.key, port);
    }
    yield { upserted: [...upserted.values()], removed: [...removed.values()] };
  }
}

function randomPort(family: IpFamily, random: (below: number) => number): SamplePort {
  const v4 = family === 'IPv4';
  const chance = (percent: number) => random(100) < percent;
  const some = (most: number, make: () => string) => [...new Set(Array.from({ length: random(most + 1) }, make))];
  const service = random(200);
  const port = random(4);
  const outer = () => (v4 ? `203.0.113.${random(20)}` : `2001:db8::${random(20).toString(16)}`);
  const pod = (node: number) => {
    const host = random(40);
    return v4 ? `10.244.${node}.${host}:8080` : `[fd00:10:244:${node}::${host.toString(16)}]:8080`;
  };
  const ranges = v4 ? ['198.18.0.0/15', '192.168.0.0/16'] : ['2001:db8:1::/48', 'fd00:192:168::/48'];
  const vip = service * 37;
  const externalPolicy = chance(30) ? 'Local' : 'Cluster';
  return {
    name: `shop/service-${service}:p${port}`,
    protocol: (['TCP', 'TCP', 'UDP', 'SCTP'] as const)[port]!,
    clusterIp: v4 ? `10.96.${vip >> 8}.${vip & 255}` : `fd00:10:96::${vip.toString(16)}`,
    port: 8000 + port,
    nodePort: chance(40) ? 30000 + random(100) : 0,
    externalIps: chance(20) ? some(2, outer) : [],
    loadBalancerVips: chance(20) ? some(2, outer) : [],
    sourceRanges: chance(50) ? ranges.slice(random(2)) : [],
    affinitySeconds: chance(15) ? 600 : 0,
    internalPolicy: chance(20) ? 'Local' : 'Cluster',
    externalPolicy,
    healthCheckNodePort: externalPolicy === 'Local' && chance(30) ? 31000 + random(20) : 0,
    local: some(3, () => pod(1)),
    remote: some(6, () => pod(2)),
  };
}
