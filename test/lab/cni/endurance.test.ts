import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Agent } from '../lab.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { linksOf } from './fixture.ts';
import { createServedNode, installedConfig } from './served-node.ts';

afterAll(removeAll);

/** The steps of ADD and DEL after which the agent can be killed. */
const STEPS = [
  ...['start', 'journal', 'address-file', 'reserved', 'bridge', 'veth', 'host-link', 'pod-link', 'ports', 'masquerade'],
  ...['firewall', 'ifb', 'features', 'complete', 'link-gone', 'features-gone', 'addresses-gone'],
];
/** How many pods are made in all. Set NODEPLANE_CNI_CYCLES for a long run. */
const CYCLES = Number(process.env.NODEPLANE_CNI_CYCLES ?? 2 * STEPS.length);
/** By how many pods a thread of an agent comes by the step before it is killed; a spooled DEL is the first that the next one serves. */
const CYCLES_A_LIFE = Math.max(2, Math.min(10, Math.floor(CYCLES / STEPS.length)));
/** Pods that live at the same time. */
const RESIDENTS = 3;

interface Pod {
  readonly namespace: TestNamespace;
  readonly containerId: string;
  addresses: string[];
}

const served = createServedNode();
const { namespace: node } = served.node;
node.run('iptables-nft', '-P', 'FORWARD', 'DROP');
/** One more than live at a time: a pod that could not be made has one too. */
const free = Array.from({ length: RESIDENTS + 2 }, (_, i) => createNamespace(`pod${i}`));
const live: Pod[] = [];
let made = 0;
let kills = 0;

/** Starts an agent that is killed when it comes by a step for the n-th time; without step it lives on. */
function startAgent(step?: string, times = 1): Promise<Agent> {
  const env = step ? ['env', `NODEPLANE_CNI_FAILPOINT=${step}:${times}`] : [];
  return served.startAgent({ enter: ['ip', 'netns', 'exec', node.name, ...env] });
}

function call(command: 'ADD' | 'DEL', { namespace, containerId }: Pod) {
  const port = 20_000 + Number(containerId.slice(1));
  const config = {
    ...installedConfig(served.conflist),
    ipMasq: true,
    firewall: true,
    runtimeConfig: {
      portMappings: [{ hostPort: port, containerPort: 80, protocol: 'tcp' }],
      bandwidth: { egressRate: 1e9, egressBurst: 1e6 },
    },
  };
  return served.call(command, namespace, { containerId, config });
}

/** ADD; false when the agent was killed over it. */
async function add(pod: Pod): Promise<boolean> {
  const { status, json, stdout } = await call('ADD', pod);
  if (status !== 0) {
    expect(json?.code, stdout).toBe(11);
    return false;
  }
  pod.addresses = json!.ips!.map(({ address }) => address.replace(/\/.*/, ''));
  const others = live.flatMap(({ addresses }) => addresses);
  expect(pod.addresses.filter((address) => others.includes(address))).toEqual([]);
  live.push(pod);
  return true;
}

/** DEL, which succeeds whether or not the agent is killed over it. */
async function remove(pod: Pod): Promise<void> {
  expect(await call('DEL', pod)).toMatchObject({ status: 0, stdout: '' });
  free.push(pod.namespace);
}

/** All that pods have on the node and in themselves. */
function belongings() {
  const network = join(served.dataDir, 'nodeplane');
  const notes = join(network, '.nodeplane');
  const inPods = [...free, ...live.map(({ namespace }) => namespace)].flatMap((namespace) => linksOf(namespace));
  const table = node.run('nft', 'list', 'ruleset');
  return {
    veths: linksOf(node).filter(({ ifname }) => ifname.startsWith('veth')).length,
    ifbs: linksOf(node).filter(({ ifname }) => ifname.startsWith('ifb')).length,
    inPods: inPods.filter(({ ifname }) => ifname.startsWith('eth')).length,
    owners: [...new Set(table.match(/nodeplane\/c\d+\/eth0/g) ?? [])].map((name) => name.split('/')[1]).sort(),
    admitted: /NODEPLANE-FORWARD/.test(table),
    reservations: served.reservations(),
    notes: existsSync(notes) ? readdirSync(notes).filter((name) => name !== 'boot-id').length : 0,
    temporaries: readdirSync(served.dataDir, { recursive: true }).filter((name) => String(name).includes('tmp')),
    kept: served.kept(),
  };
}

function expectOnlyLive(): void {
  const [count, addresses] = [live.length, live.flatMap((pod) => pod.addresses)];
  expect(belongings()).toEqual({
    veths: count,
    ifbs: count,
    inPods: count,
    notes: count,
    temporaries: [],
    kept: [],
    owners: live.map(({ containerId }) => containerId).sort(),
    admitted: count > 0,
    reservations: addresses.sort(),
  });
}

it(`leaks nothing and gives no address twice in ${CYCLES} ADDs and DELs with kill -9 at every step in turn`, {
  timeout: 120_000 + CYCLES * 2000,
}, async () => {
  let failed: Pod | undefined;
  for (let life = 0; made < CYCLES || life < STEPS.length; life++) {
    const agent = await startAgent(STEPS[life % STEPS.length], CYCLES_A_LIFE);
    let killed = false;
    void agent.ended.then(() => {
      killed = true;
    });
    // As a kubelet does with the sandbox that failed.
    if (failed) await remove(failed);
    failed = undefined;
    await expect.poll(() => served.kept()).toEqual([]);
    if (life > 0) expectOnlyLive();
    for (let cycle = 0; !killed; cycle++) {
      // Each thread of the agent counts for itself.
      expect(cycle, `no agent was killed over "${STEPS[life % STEPS.length]}"`).toBeLessThan(8 * CYCLES_A_LIFE);
      if (live.length >= RESIDENTS) await remove(live.shift()!);
      if (served.kept().length > 0) break;
      const pod: Pod = { namespace: free.shift()!, containerId: `c${made++}`, addresses: [] };
      if (await add(pod)) continue;
      failed = pod;
      break;
    }
    await agent.ended;
    kills++;
  }
  await startAgent();
  if (failed) await remove(failed);
  await expect.poll(() => served.kept()).toEqual([]);
  expectOnlyLive();
  for (const pod of live.splice(0)) await remove(pod);
  expectOnlyLive();
  console.log(`${made} ADDs, ${kills} agents killed`);
});
