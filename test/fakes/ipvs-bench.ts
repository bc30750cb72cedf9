import { parseCidr, parseIp } from '../../src/core/index.ts';
import type { ServicePortPlan } from '../../src/proxy/index.ts';
import { IpvsDataplane } from '../../src/proxy/ipvs/index.ts';
import type { NftTables } from '../../src/proxy/rules/index.ts';
import { type SamplePort, sampleNode, samplePlan, samplePort } from '../samples/sample-plan.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeIptables } from './fake-iptables.ts';
import { FakeIpvsKernel } from './fake-ipvs-kernel.ts';

/** The node's address. */
export const NODE = '192.168.0.7';

/** A dataplane on a kernel in memory, with a plan that changes. */
export function ipvsBench(
  ports: readonly ServicePortPlan[] = [],
  excludeCidrs: readonly string[] = [],
  kernelTables?: NftTables,
) {
  const kernel = new FakeIpvsKernel('IPv4', [NODE]);
  const failures: unknown[] = [];
  const clock = new FakeClock(undefined, (error) => failures.push(error));
  const iptables = new FakeIptables();
  const make = () =>
    new IpvsDataplane({
      family: 'IPv4',
      variant: 'nft',
      exec: iptables.exec,
      kernel: kernel.reopened(),
      kernelTables,
      clock,
      excludeCidrs: excludeCidrs.map(parseCidr),
    });
  const node = sampleNode({ nodeIp: parseIp(NODE) });
  const plan = samplePlan('IPv4', node, ports);
  const live = plan.ports as Map<string, ServicePortPlan>;
  let dataplane = make();
  return {
    kernel,
    iptables,
    clock,
    plan,
    failures,
    resync: () => dataplane.resync(plan),
    verify: () => dataplane.verify(),
    cleanup: () => dataplane.cleanup(),
    retire: (signal?: AbortSignal) => dataplane.retire(signal),
    traffic: () => dataplane.traffic(),
    close: () => dataplane.close(),
    /** As a new process: nothing is remembered but what the kernel holds. */
    async restart() {
      await dataplane.close();
      dataplane = make();
      await dataplane.resync(plan);
    },
    async upsert(...samples: SamplePort[]) {
      const upserted = samples.map(samplePort);
      for (const port of upserted) live.set(port.key, port);
      kernel.operations.length = 0;
      return dataplane.sync(plan, { upserted, removed: [] });
    },
    async remove(key: string) {
      const removed = live.get(key)!;
      live.delete(key);
      kernel.operations.length = 0;
      return dataplane.sync(plan, { upserted: [], removed: [removed] });
    },
  };
}

/** The Service most tests are about: its virtual server is `VIP`. */
export const web = (remote: string[], more: Partial<SamplePort> = {}): SamplePort => ({
  name: 'shop/web:http',
  clusterIp: '10.96.0.1',
  remote,
  ...more,
});
export const VIP = '10.96.0.1:80/TCP';
export const [A, B, C] = ['10.244.2.1:8080', '10.244.2.2:8080', '10.244.2.3:8080'];
