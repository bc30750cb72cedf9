import { type IpFamily, parseIp, systemClock } from '../../src/core/index.ts';
import { ApiSource } from '../../src/kube/index.ts';
import {
  addTouched,
  changeOf,
  type Dataplane,
  FamilyProxy,
  type Plan,
  type PlanDelta,
  proxyResources,
  ServiceObjects,
  staleFlows,
  type TouchedPorts,
} from '../../src/proxy/index.ts';
import { IptablesDataplane } from '../../src/proxy/iptables/index.ts';
import { IpvsDataplane, type IpvsKernel, openIpvsKernel } from '../../src/proxy/ipvs/index.ts';
import { type Exec, inNetns } from '../../src/sys/index.ts';
import { FakeIpvsKernel } from '../../test/fakes/fake-ipvs-kernel.ts';
import { execIn } from '../../test/lab/iptables/fixtures.ts';
import { createNamespace, type TestNamespace } from '../../test/lab/namespace.ts';
import { dataplaneIn } from '../../test/lab/nftables/fixtures.ts';
import { PROXY_OPTIONS } from '../changing-proxy.ts';
import type { LoopMeter } from '../loop-meter.ts';
import { WatchedApi } from './watched-api.ts';

/** Of the node. */
const ADDRESSES = ['192.0.2.1', '2001:db8:ffff::1'].map(parseIp);

export type SubjectMode = 'nftables' | 'iptables' | 'ipvs';

/** A proxy at work in one mode and family, fed by an API server. */
export interface Subject {
  readonly api: WatchedApi;
  /** Sends events; resolves when what they say is in the kernel. */
  afterSync(lines: ReturnType<WatchedApi['encode']>): Promise<void>;
  resync(): Promise<void>;
  verify(): Promise<void>;
  stop(): Promise<void>;
}

/** In a namespace of its own, with the real kernel (mode ipvs: a fake one where IPVS is missing). */
export async function startNode(mode: SubjectMode, family: IpFamily, meter: LoopMeter): Promise<Subject> {
  const namespace = createNamespace('hostile');
  namespace.run('ip', 'link', 'set', 'lo', 'up');
  const dataplane = createDataplane(mode, family, namespace);
  const api = new WatchedApi();
  const store = new ServiceObjects();
  const touched: TouchedPorts = new Map();
  let endOfPlan = () => {};
  let told = () => {};
  let received = 0;
  const proxy = new FamilyProxy({
    ...PROXY_OPTIONS,
    clock: systemClock,
    store,
    dataplane: measured(dataplane, meter),
    localAddresses: () => ({ all: ADDRESSES, own: ADDRESSES }),
    observers: [
      (event) => {
        if (event.kind === 'syncStarted') endOfPlan = meter.begin('plan');
        if (event.kind === 'syncFailed') process.stderr.write(`${mode} ${family}: ${String(event.error)}\n`);
        if (event.kind === 'syncFinished' || event.kind === 'syncFailed') told();
      },
    ],
    flows: {
      note(delta) {
        endOfPlan();
        const end = meter.begin('flows');
        addTouched(touched, delta);
        end();
      },
      async clean() {
        const end = meter.begin('flows');
        staleFlows(touched, () => false);
        touched.clear();
        end();
      },
    },
  });
  const nextSync = () =>
    new Promise<void>((resolve) => {
      told = resolve;
    });
  const source = new ApiSource({ client: api, resources: proxyResources(PROXY_OPTIONS.nodeName, '') });
  await source.start({
    event(event) {
      received++;
      const services = store.apply(event).services;
      const change = changeOf(event, family);
      if (change && services.length > 0) proxy.touch(services, change);
    },
    synced: () => {},
    problems: (problems) => {
      for (const { message } of problems.slice(0, 1))
        if (!message.includes('node')) process.stderr.write(`${message}\n`);
    },
  });
  const first = nextSync();
  proxy.start();
  await first;
  return {
    api,
    async afterSync(lines) {
      const wanted = received + lines.length;
      api.tell(lines);
      while (received < wanted) await nextSync();
      // Whatever came while the last sync ran has another one.
      await quiet(nextSync);
    },
    async resync() {
      const done = nextSync();
      proxy.resync();
      await done;
    },
    async verify() {
      const end = meter.begin('verify');
      await dataplane.verify();
      end();
    },
    async stop() {
      await source.stop();
      await proxy.stop();
      await dataplane.close?.();
      namespace.remove();
    },
  };
}

/** Resolves when no sync has ended for a while. */
async function quiet(nextSync: () => Promise<void>): Promise<void> {
  for (;;) {
    const more = await Promise.race([
      nextSync().then(() => true),
      new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 300)),
    ]);
    if (!more) return;
  }
}

/** The same dataplane, telling the meter when it is at work. */
function measured(dataplane: Dataplane, meter: LoopMeter): Dataplane {
  const during = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const end = meter.begin(what);
    try {
      return await work();
    } finally {
      end();
    }
  };
  return {
    family: dataplane.family,
    sync: (plan: Plan, delta: PlanDelta) => during('sync', () => dataplane.sync(plan, delta)),
    resync: (plan: Plan) => during('resync', () => dataplane.resync(plan)),
    verify: () => during('verify', () => dataplane.verify()),
    cleanup: () => dataplane.cleanup(),
  };
}

function createDataplane(mode: SubjectMode, family: IpFamily, namespace: TestNamespace): Dataplane {
  const exec = execIn(namespace);
  switch (mode) {
    case 'nftables':
      return dataplaneIn(namespace, family);
    case 'iptables':
      return new IptablesDataplane({ family, variant: 'legacy', exec });
    case 'ipvs':
      // Its rules are the same few whatever the Services.
      return new IpvsDataplane({ family, variant: 'legacy', exec: noProgram, kernel: ipvsKernel(family, namespace) });
    default:
      return mode satisfies never;
  }
}

const noProgram: Exec = async () => ({ status: 0, stdout: '', stderr: '' });

function ipvsKernel(family: IpFamily, namespace: TestNamespace): IpvsKernel {
  try {
    return inNetns(namespace.path, () => openIpvsKernel(family));
  } catch {
    return new FakeIpvsKernel(family);
  }
}
