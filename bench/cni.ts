import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inNetns } from '../src/sys/index.ts';
import { useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import { createLab } from '../test/lab/lab.ts';
import { createFolder, createNamespace, type TestNamespace } from '../test/lab/namespace.ts';
import { type NodeState, prepareNode } from '../test/lab/node-state.ts';
import {
  hostPlugin,
  referencePlugins,
  type Subject,
  type SubjectPlace,
  standAlonePlugin,
  type Wanted,
} from './cni-subjects.ts';
import { pluginRunner, type RunChains } from './plugin-runs.ts';
import { type Figure, median, report } from './report.ts';

interface Series extends Wanted {
  readonly label: string;
  /** What others have left on the nodes. @default empty */
  readonly state?: NodeState;
  /** What is promised for the way through the agent, and for the plugin alone, as a part of the reference's time. */
  readonly targets: {
    readonly add?: string;
    readonly del?: string;
    readonly alone?: string;
    readonly parallel?: string;
  };
}

const ONE_AT_A_TIME = 30;
/** Pods that do not count: they bring bridges and tables with them, and the agent's code is compiled over them. */
const WARM_UP = 10;
const IN_PARALLEL = 200;
const LANES = 8;
const STANDARD: Series = {
  ...{ label: 'standard list, node as a kubelet leaves it', ipMasq: true, hostPort: false, standard: true },
  ...{ state: 'kubelet-nft', targets: { add: 'at most 0.3 x', del: 'at most 0.3 x', parallel: 'at most 0.5 x' } },
};
const SERIES: readonly Series[] = [
  { label: 'plain', ipMasq: false, hostPort: false, targets: { add: 'at most 0.6 x', parallel: 'at most 0.5 x' } },
  { label: 'ipMasq', ipMasq: true, hostPort: false, targets: { del: 'at most 0.3 x', alone: 'at most 1.0 x' } },
  {
    ...{ label: 'ipMasq, hostPort', ipMasq: true, hostPort: true },
    targets: { add: 'at most 0.3 x', del: 'at most 0.3 x', parallel: 'at most 0.5 x' },
  },
  STANDARD,
];

/** Times in milliseconds, one for each pod. */
interface Times {
  readonly add: number[];
  readonly del: number[];
}

/**
 * A pod's ADD and DEL as the runtime sees them, from the start of the plugin to its end: through shim and agent and by the
 * plugin alone, against Debian's containernetworking-plugins. One pod at a time, by turns; and many, eight at a time.
 */
export async function benchCni(): Promise<void> {
  await benchEach(SERIES);
}

/** The last of these alone: what most nodes have. */
export async function benchCniStandard(): Promise<void> {
  await benchEach([STANDARD]);
}

async function benchEach(all: readonly Series[]): Promise<void> {
  useOwnLockFile();
  const run = pluginRunner(createFolder('run-plugins').path);
  const pods = Array.from({ length: IN_PARALLEL }, (_, i) => createNamespace(`p${i}`));
  for (const [index, series] of all.entries()) await benchSeries(series, index, run, pods);
}

/**
 * Each subject has a node of its own: what one leaves in the packet filter, such as a chain FORWARD, would be the others'
 * surroundings.
 */
async function benchSeries(
  series: Series,
  index: number,
  run: RunChains,
  pods: readonly TestNamespace[],
): Promise<void> {
  const lab = createLab();
  const at = (name: string) => join(lab.folder, name);
  const nodes = ['reference', 'agent', 'alone'].map((name) => lab.addNode({ name }));
  for (const { namespace } of nodes) prepareNode(namespace, series.state ?? 'empty');
  mkdirSync(at('manifests'));
  writeFileSync(at('manifests/node.yaml'), 'apiVersion: v1\nkind: Node\nmetadata: { name: agent }\n');
  const socket = at('cni.sock.d/cni.sock');
  const flags = ['--cni', '--cni-bin-dir', at('bin'), '--cni-conf-dir', at('net.d'), '--cni-socket', socket];
  // In this mode the agent itself makes no chain FORWARD of iptables.
  flags.push('--cni-spool-dir', at('spool'), '--log-level', 'warn', '--proxy-mode', 'nftables');
  const agent = await nodes[1]!.startAgent({ manifests: at('manifests'), flags });
  const place = (number: number): SubjectPlace => ({
    ...{ number: 100 + 10 * index + number, dataDir: at('data'), wanted: series, node: nodes[number]!.namespace },
  });
  const subjects = [
    referencePlugins(place(0)),
    hostPlugin(place(1), at('bin/nodeplane-cni'), socket),
    standAlonePlugin(place(2)),
  ];
  const alone = oneAtATime(run, subjects, pods.slice(0, ONE_AT_A_TIME));
  const crowd = inParallel(run, subjects, pods);
  report(`cni, ${series.label}`, figures(series, alone, crowd));
  await agent.stop();
}

/** The subjects take turns with each pod. */
function oneAtATime(run: RunChains, subjects: readonly Subject[], pods: readonly TestNamespace[]): Times[] {
  const times = subjects.map((): Times => ({ add: [], del: [] }));
  for (const [number, pod] of pods.entries()) {
    for (const [index, subject] of subjects.entries()) {
      inNetns(subject.node.path, () => {
        const added = run([subject.add(pod, number)], 1);
        times[index]!.add.push(added.totalMs);
        times[index]!.del.push(run([subject.del(pod, number, added.outputs[0]!)], 1).totalMs);
      });
    }
  }
  return times.map(({ add, del }) => ({ add: add.slice(WARM_UP), del: del.slice(WARM_UP) }));
}

/** One time for all pods, by each subject. */
function inParallel(run: RunChains, subjects: readonly Subject[], pods: readonly TestNamespace[]): Times[] {
  return subjects.map((subject) =>
    inNetns(subject.node.path, () => {
      const added = run(
        pods.map((pod, number) => subject.add(pod, number)),
        LANES,
      );
      const removed = run(
        pods.map((pod, number) => subject.del(pod, number, added.outputs[number]!)),
        LANES,
      );
      return { add: [added.totalMs], del: [removed.totalMs] };
    }),
  );
}

function figures({ targets }: Series, single: readonly Times[], crowd: readonly Times[]): Figure[] {
  const rows: readonly [what: string, times: readonly Times[], verb: 'add' | 'del', targets: readonly unknown[]][] = [
    ['ADD', single, 'add', [targets.add, targets.alone]],
    ['DEL', single, 'del', [targets.del]],
    [`${IN_PARALLEL} ADDs, ${LANES} at a time`, crowd, 'add', [targets.parallel]],
    [`${IN_PARALLEL} DELs, ${LANES} at a time`, crowd, 'del', []],
  ];
  return rows.flatMap(([what, [reference, ...ours], verb, promised]) =>
    ours.map((times, index): Figure => {
      const target = promised[index] as string | undefined;
      return {
        ...{ what: `${what}, ${index === 0 ? 'shim and agent' : 'stand-alone'}`, unit: 'ms' },
        ...{ ours: median(times[verb]), peer: median(reference![verb]), peerName: 'Debian’s reference plugins' },
        ...(target !== undefined && { target }),
      };
    }),
  );
}
