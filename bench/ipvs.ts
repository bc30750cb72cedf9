import { spawnSync } from 'node:child_process';
import type { ServicePortPlan } from '../src/proxy/index.ts';
import {
  elementText,
  IpvsDataplane,
  type IpvsKernel,
  type Operation,
  openIpvsKernel,
} from '../src/proxy/ipvs/index.ts';
import { createNamespace } from '../test/lab/namespace.ts';
import { sampleNode, samplePlan, samplePort } from '../test/samples/sample-plan.ts';
import { sampleAddress } from './cluster.ts';
import { HOLDS_THE_LINE, inTurns, ratioAtMost, report } from './report/index.ts';
import { withinNamespace } from './within-namespace.ts';

const MANY = 5000;
const FEW = 50;
const ENDPOINTS = 10;
const CHANGES = 200;
const TURNS = 3;
/** Until the compiler has seen enough of the code to optimise it. */
const WARM_UP = 100;
/** Members given to the program ipset one by one; the time of all is reckoned from these. */
const SAMPLED_MEMBERS = 100;

/**
 * A full load, batched, against one request per object; and a changed endpoint among many Services against one among few.
 * Needs a kernel with IPVS: `npm run vm -- dist/nodeplane-bench ipvs`.
 */
export async function benchIpvs(): Promise<void> {
  // The first load of a process finds nothing compiled yet.
  for (const wrap of [oneByOne, (kernel: IpvsKernel) => kernel]) await load(FEW * ENDPOINTS, wrap);
  const took = { ours: [] as number[], requests: [] as number[], many: [] as number[], few: [] as number[] };
  let members = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    const ours = await load(MANY, (kernel) => kernel);
    members = ours.members;
    took.ours.push(ours.seconds);
    took.requests.push((await load(MANY, oneByOne)).seconds);
    took.many.push(...(await changes(MANY)));
    took.few.push(...(await changes(FEW)));
  }
  const byProgram = members * (await programSeconds());
  const single = took.requests.map((seconds) => seconds + byProgram);
  report(`ipvs, ${MANY} x ${ENDPOINTS}`, [
    {
      what: 'full load',
      unit: 's',
      ...inTurns(took.ours, single),
      peerName: 'one request per object, members by ipset',
      target: ratioAtMost(0.2),
    },
    {
      what: 'full load, netlink alone',
      unit: 's',
      ...inTurns(took.ours, took.requests),
      peerName: 'one netlink request per object',
      target: ratioAtMost(1, HOLDS_THE_LINE),
    },
    {
      what: 'one changed endpoint, median',
      unit: 'ms',
      ...inTurns(took.many, took.few),
      peerName: `at ${FEW} Services`,
      target: ratioAtMost(1.4),
    },
  ]);
}

/** The first full sync of so many Services, without iptables, which is the same for both. */
async function load(services: number, wrap: (kernel: IpvsKernel) => IpvsKernel) {
  return withDataplane(wrap, async (dataplane, kernel) => {
    const plan = samplePlan('IPv4', sampleNode(), ports(services));
    kernel.prepare();
    const started = performance.now();
    const { objects, leftOut = [] } = await dataplane.resync(plan);
    if (leftOut.length > 0) throw new Error(leftOut[0]!.reason);
    return { seconds: (performance.now() - started) / 1000, members: objects.elements!.total };
  });
}

/** The milliseconds that syncs of one changed endpoint take: an endpoint goes, another comes. */
async function changes(services: number): Promise<number[]> {
  return withDataplane(
    (kernel) => kernel,
    async (dataplane) => {
      const live = new Map(ports(services).map((port) => [port.key, port]));
      const plan = { family: 'IPv4', node: sampleNode(), ports: live } as const;
      await dataplane.resync(plan);
      const times: number[] = [];
      for (let change = 0; change < WARM_UP + CHANGES; change++) {
        const port = servicePort((change * 7919) % services, change + 1);
        live.set(port.key, port);
        const started = performance.now();
        const { objects } = await dataplane.sync(plan, { upserted: [port], removed: [] });
        const ms = performance.now() - started;
        if (objects.destinations!.written > 2 || objects.elements!.written > 0) {
          throw new Error('The change was more than two destinations');
        }
        if (change >= WARM_UP) times.push(ms);
      }
      return times;
    },
  );
}

async function withDataplane<T>(
  wrap: (kernel: IpvsKernel) => IpvsKernel,
  work: (dataplane: IpvsDataplane, kernel: IpvsKernel) => Promise<T>,
): Promise<T> {
  const namespace = createNamespace('bench-ipvs');
  try {
    // A namespace without any address takes no destinations.
    namespace.run('ip', 'link', 'set', 'lo', 'up');
    return await withinNamespace(namespace.path, async () => {
      const kernel = wrap(openIpvsKernel('IPv4'));
      const exec = async () => ({ status: 0, stdout: '', stderr: '' });
      const dataplane = new IpvsDataplane({ family: 'IPv4', variant: 'nft', exec, kernel });
      try {
        return await work(dataplane, kernel);
      } finally {
        await dataplane.close();
      }
    });
  } finally {
    namespace.remove();
  }
}

/** The same kernel, asked for one change at a time. */
function oneByOne(kernel: IpvsKernel): IpvsKernel {
  return new Proxy(kernel, {
    get(target, name) {
      if (name === 'apply') {
        return (operations: readonly Operation[]) => operations.map((operation) => target.apply([operation])[0]);
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Seconds one member costs when the program ipset adds it, as kube-proxy does. */
async function programSeconds(): Promise<number> {
  const namespace = createNamespace('bench-ipset');
  try {
    namespace.run('ipset', 'create', 'sample', 'hash:ip');
    return await withinNamespace(namespace.path, async () => {
      const started = performance.now();
      for (let n = 0; n < SAMPLED_MEMBERS; n++) {
        const text = elementText({ type: 'hash:ip', address: servicePort(n, 0).clusterIp });
        const { status, stderr } = spawnSync('ipset', ['add', 'sample', text, '-exist']);
        if (status !== 0) throw new Error(String(stderr));
      }
      return (performance.now() - started) / 1000 / SAMPLED_MEMBERS;
    });
  } finally {
    namespace.remove();
  }
}

function ports(services: number): ServicePortPlan[] {
  return Array.from({ length: services }, (_, n) => servicePort(n, 0));
}

/** Ten endpoints on another node, one of which differs between generations; generation 0 is what the Service starts with. */
function servicePort(n: number, generation: number): ServicePortPlan {
  const remote = Array.from({ length: ENDPOINTS }, (_, index) => {
    const host = index === 3 && generation > 0 ? 20 + (generation % 200) : index + 1;
    return `10.${200 + (n >> 8)}.${n & 255}.${host}:8080`;
  });
  return samplePort({ name: `bench/service-${n}:http`, clusterIp: sampleAddress(96, n), remote });
}
