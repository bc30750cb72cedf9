import { type Containerd, startContainerd } from '../test/cri/containerd.ts';
import { installReference, placeConflist, serveByAgent } from '../test/cri/plugins.ts';
import { createLab, type LabNode } from '../test/lab/lab.ts';
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

/**
 * A node that gets many pods at once, as after a drain elsewhere: so many sandboxes in Debian's containerd, and away with
 * all of them. ADD and DEL as containerd measures them, among everything else that it does for a sandbox; the standard list
 * by shim and agent against the reference plugins that do the same, in turns on the same machine, each on a node of its own.
 */
export async function benchCniBurst(): Promise<void> {
  const lab = createLab();
  const ours = lab.addNode({ name: 'ours' });
  const theirs = lab.addNode({ name: 'reference' });
  for (const { namespace } of [ours, theirs]) prepareNode(namespace, 'kubelet-nft');
  const [agentRuntime, referenceRuntime] = [await startContainerd(ours), await startContainerd(theirs)];
  const agent = await serveByAgent(agentRuntime, ours, { flags: ['--proxy-mode', 'nftables', '--log-level', 'warn'] });
  await serveByReference(referenceRuntime, theirs);
  for (const runtime of [agentRuntime, referenceRuntime]) await burst(runtime, 'warm', WARM_UP);
  const turns = { ours: [] as Turn[], theirs: [] as Turn[] };
  for (let turn = 0; turn < TURNS; turn++) {
    turns.ours.push(await burst(agentRuntime, `pod-${turn}`, PODS));
    turns.theirs.push(await burst(referenceRuntime, `pod-${turn}`, PODS));
  }
  report(`cni-burst, ${PODS} sandboxes at once`, figures(turns.ours, turns.theirs));
  await agent.stop();
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
