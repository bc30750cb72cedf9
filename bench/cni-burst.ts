import { type Containerd, startContainerd } from '../test/cri/containerd.ts';
import { installReference, placeConflist, serveByAgent } from '../test/cri/plugins.ts';
import { type Agent, createLab, type Lab, type LabNode } from '../test/lab/lab.ts';
import { prepareNode } from '../test/lab/node-state.ts';
import { type Latency, networkLatency } from './burst-meter.ts';
import { type Figure, inTurns, ratioAtMost, report } from './report/index.ts';

const PODS = 60;
const WARM_UP = 5;
const TURNS = 3;
const TIMEOUT_MS = 300_000;

/** What a turn of one runtime took, in milliseconds. */
interface Turn {
  /** Until all sandboxes were there. */
  readonly upMs: number;
  readonly add: Latency;
  readonly del: Latency;
}

/** A way to attach pods, on a node of its own. */
interface Subject {
  readonly runtime: Containerd;
  /** Undefined: plugins alone. */
  readonly agent?: Agent;
  readonly turns: Turn[];
}

/**
 * A node that gets many pods at once, as after a drain elsewhere: so many sandboxes in Debian's containerd, and away with
 * all of them. ADD and DEL as containerd measures them, among everything else that it does for a sandbox; the standard list
 * by shim and agent against the reference plugins that do the same, in turns on the same machine, each on a node of its own.
 *
 * @param other the folder of another build, whose agent takes part too. @default none
 */
export async function benchCniBurst(other?: string): Promise<void> {
  const lab = createLab();
  const builds = [undefined, ...(other === undefined ? [] : [other])];
  const agents: Subject[] = [];
  for (const [index, build] of builds.entries()) {
    const [runtime, node] = await nodeWithRuntime(lab, `agent${index}`);
    const flags = ['--proxy-mode', 'nftables', '--log-level', 'warn'];
    agents.push({ runtime, agent: await serveByAgent(runtime, node, { flags, build }), turns: [] });
  }
  const [runtime, node] = await nodeWithRuntime(lab, 'reference');
  await serveByReference(runtime, node);
  const reference: Subject = { runtime, turns: [] };
  for (const subject of [...agents, reference]) await burst(subject.runtime, 'warm', WARM_UP);
  for (let turn = 0; turn < TURNS; turn++) {
    for (const subject of [...agents, reference]) subject.turns.push(await burst(subject.runtime, `pod-${turn}`, PODS));
  }
  const [ours, theOther] = agents;
  report(`cni-burst, ${PODS} sandboxes at once`, figures(ours!.turns, reference.turns));
  if (theOther) report('cni-burst, the other build', figures(theOther.turns, reference.turns));
  for (const { agent } of agents) await agent?.stop();
}

async function nodeWithRuntime(lab: Lab, name: string): Promise<[Containerd, LabNode]> {
  const node = lab.addNode({ name });
  prepareNode(node.namespace, 'kubelet-nft');
  return [await startContainerd(node), node];
}

async function burst({ cri, enclosure, metrics }: Containerd, name: string, count: number): Promise<Turn> {
  const before = metrics();
  const startedAt = performance.now();
  const ids = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const config = {
        metadata: { name: `${name}-${index}`, uid: `uid-${name}-${index}`, namespace: 'default', attempt: 0 },
        linux: { cgroupParent: `/${enclosure.cgroup}` },
      };
      return (await cri.call('RunPodSandbox', { config }, { timeoutMs: TIMEOUT_MS })).podSandboxId;
    }),
  );
  const upMs = performance.now() - startedAt;
  await Promise.all(ids.map((podSandboxId) => cri.call('StopPodSandbox', { podSandboxId }, { timeoutMs: TIMEOUT_MS })));
  await Promise.all(
    ids.map((podSandboxId) => cri.call('RemovePodSandbox', { podSandboxId }, { timeoutMs: TIMEOUT_MS })),
  );
  const after = metrics();
  return {
    upMs,
    add: networkLatency(before, after, 'set_up_pod'),
    del: networkLatency(before, after, 'tear_down_pod'),
  };
}

/** The reference plugins with the list that does what the agent's own one does. */
async function serveByReference(runtime: Containerd, { podCidrs }: LabNode): Promise<void> {
  installReference(runtime.cniBinDir, ['loopback', 'bridge', 'host-local', 'portmap', 'bandwidth', 'firewall']);
  const bridge = { type: 'bridge', bridge: 'cni0', isDefaultGateway: true, ipMasq: true, hairpinMode: true };
  placeConflist(runtime, '10-reference.conflist', {
    cniVersion: '1.0.0',
    name: 'reference',
    plugins: [
      { ...bridge, ipam: { type: 'host-local', ranges: podCidrs.map((subnet) => [{ subnet }]) } },
      { type: 'portmap', capabilities: { portMappings: true } },
      { type: 'bandwidth', capabilities: { bandwidth: true } },
      { type: 'firewall' },
    ],
  });
  await runtime.networkReady();
}

function figures(ours: readonly Turn[], theirs: readonly Turn[]): Figure[] {
  const figure = (what: string, of: (turn: Turn) => number): Figure => ({
    what,
    unit: 'ms',
    ...inTurns(ours.map(of), theirs.map(of)),
    peerName: 'Debian’s reference plugins',
  });
  return [
    { ...figure('ADD, mean', ({ add }) => add.meanMs), target: ratioAtMost(0.4) },
    figure('ADD, p50', ({ add }) => add.p50Ms),
    figure('ADD, p99', ({ add }) => add.p99Ms),
    { ...figure('DEL, mean', ({ del }) => del.meanMs), target: ratioAtMost(0.5) },
    figure('DEL, p50', ({ del }) => del.p50Ms),
    figure('DEL, p99', ({ del }) => del.p99Ms),
    figure('until all are up', ({ upMs }) => upMs),
  ];
}
