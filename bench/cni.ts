import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inNetns } from '../src/sys/index.ts';
import { useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import type { IptablesVariant } from '../test/lab/iptables-rules.ts';
import { createLab } from '../test/lab/lab.ts';
import { createFolder, createNamespace, type TestNamespace } from '../test/lab/namespace.ts';
import { type NodeState, prepareNode } from '../test/lab/node-state.ts';
import { samplePorts } from './cluster.ts';
import {
  hostPlugin,
  referencePlugins,
  type Subject,
  type SubjectPlace,
  standAlonePlugin,
  type Wanted,
} from './cni-subjects.ts';
import { pluginRunner, type RunChains } from './plugin-runs.ts';
import { type Figure, HOLDS_THE_LINE, inTurns, ratioAtMost, report, type Target } from './report/index.ts';
import { inOrderOfChains, upstreamLayout } from './upstream-layout.ts';

interface Series extends Wanted {
  readonly label: string;
  /** How the README calls it. @default it does not show it */
  readonly headline?: string;
  /** What others have left on the nodes. @default empty */
  readonly state?: NodeState;
  /** Nodes with a Service proxy: kube-proxy's layout in iptables of this variant, for so many Services. @default none */
  readonly services?: { readonly count: number; readonly variant: IptablesVariant };
  /** @default PODS */
  readonly pods?: Pods;
  /** What is promised for the way through the agent, as a part of the reference's time; the plugin alone: decision 7. */
  readonly targets: {
    readonly add: Target;
    readonly del: Target;
    readonly parallel?: Target;
  };
}

/** How many pods come and go. */
interface Pods {
  /** One after the other. */
  readonly single: number;
  /** The first of those, which do not count: they bring bridges and tables with them, and the agent's code is compiled over them. */
  readonly warmUp: number;
  /** Of a turn of many at a time. */
  readonly crowd: number;
  /** The first of these does not count either: over it the agent starts its threads. */
  readonly turns: number;
}

const PODS: Pods = { single: 30, warmUp: 10, crowd: 40, turns: 6 };
/**
 * Beside so many Services the reference plugins take seconds for a pod in iptables-nft: each lists all of table nat several
 * times. With as many pods as elsewhere the last series would end after an hour.
 */
const PODS_BESIDE_SERVICES: Pods = { single: 12, warmUp: 4, crowd: 16, turns: 4 };
const LANES = 8;
/** The issue's own: what the reference takes is for one pod after the other, and for many at a time. */
const ON_A_NODE: Series['targets'] = { add: ratioAtMost(0.3), del: ratioAtMost(0.5), parallel: ratioAtMost(0.45) };
const STANDARD: Series = {
  label: 'standard list, node as a kubelet leaves it',
  headline: 'standard conflist',
  ipMasq: true,
  hostPort: false,
  standard: true,
  state: 'kubelet-nft',
  targets: ON_A_NODE,
};
/** The same where legacy iptables is in use, beside a firewall of a hundred zones, and beside a proxy with 5,000 Services. */
const ON_OTHER_NODES: readonly Series[] = [
  standardOn('legacy iptables', 'kubelet-legacy'),
  standardOn('firewall of 100 zones', 'many-zones'),
  standardOn('5000 Services of kube-proxy in iptables-nft', 'kubelet-nft', { count: 5000, variant: 'nft' }),
  standardOn('5000 Services of kube-proxy in iptables-legacy', 'kubelet-legacy', { count: 5000, variant: 'legacy' }),
];
const SERIES: readonly Series[] = [
  {
    label: 'plain',
    ipMasq: false,
    hostPort: false,
    targets: { add: ratioAtMost(0.6), del: ratioAtMost(0.3), parallel: ratioAtMost(0.5) },
  },
  {
    label: 'ipMasq',
    ipMasq: true,
    hostPort: false,
    targets: { add: ratioAtMost(0.6, HOLDS_THE_LINE), del: ratioAtMost(0.3) },
  },
  {
    label: 'ipMasq, hostPort',
    ipMasq: true,
    hostPort: true,
    targets: { add: ratioAtMost(0.3), del: ratioAtMost(0.3), parallel: ratioAtMost(0.5) },
  },
  STANDARD,
];

/** Times in milliseconds, one for each pod or turn. */
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

/**
 * The standard list on nodes with other packet filters, and with many Services.
 *
 * @param only what the names of the series must hold
 */
export async function benchCniNodes(only = ''): Promise<void> {
  await benchEach(ON_OTHER_NODES.filter(({ label }) => label.includes(only)));
}

async function benchEach(all: readonly Series[]): Promise<void> {
  useOwnLockFile();
  const run = pluginRunner(createFolder('run-plugins').path);
  const pods = Array.from({ length: PODS.crowd * PODS.turns }, (_, i) => createNamespace(`p${i}`));
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
  for (const { namespace } of nodes) {
    prepareNode(namespace, series.state ?? 'empty');
    if (series.services) loadServices(namespace, series.services);
  }
  mkdirSync(at('manifests'));
  writeFileSync(at('manifests/node.yaml'), 'apiVersion: v1\nkind: Node\nmetadata: { name: agent }\n');
  const socket = at('cni.sock.d/cni.sock');
  const flags = ['--cni', '--cni-bin-dir', at('bin'), '--cni-conf-dir', at('net.d'), '--cni-socket', socket];
  // In this mode the agent itself makes no chain FORWARD of iptables.
  flags.push('--cni-spool-dir', at('spool'), '--log-level', 'warn', '--proxy-mode', 'nftables');
  const agent = await nodes[1]!.startAgent({ manifests: at('manifests'), flags });
  const place = (number: number): SubjectPlace => ({
    number: 100 + 10 * index + number,
    dataDir: at('data'),
    wanted: series,
    node: nodes[number]!.namespace,
  });
  const subjects = [
    referencePlugins(place(0)),
    hostPlugin(place(1), at('bin/nodeplane-cni'), socket),
    standAlonePlugin(place(2)),
  ];
  const counts = series.pods ?? PODS;
  const alone = oneAtATime(run, subjects, pods.slice(0, counts.single), counts.warmUp);
  const crowd = inParallel(run, subjects, pods, counts);
  report(`cni, ${series.label}`, figures(series, alone, crowd));
  await agent.stop();
}

function standardOn(node: string, state: NodeState, services?: Series['services']): Series {
  const { label: _label, headline: _headline, ...rest } = STANDARD;
  return { ...rest, ...(services && { services, pods: PODS_BESIDE_SERVICES }), label: `standard list, ${node}`, state };
}

function loadServices({ path }: TestNamespace, { count, variant }: NonNullable<Series['services']>): void {
  const input = inOrderOfChains(upstreamLayout(samplePorts(count, 1)));
  inNetns(path, () => {
    execFileSync(`iptables-${variant}-restore`, ['--noflush'], { input, stdio: ['pipe', 'ignore', 'inherit'] });
  });
}

/** The subjects take turns with each pod. */
function oneAtATime(
  run: RunChains,
  subjects: readonly Subject[],
  pods: readonly TestNamespace[],
  warmUp: number,
): Times[] {
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
  return times.map(({ add, del }) => ({ add: add.slice(warmUp), del: del.slice(warmUp) }));
}

/** One time for the pods of a turn; the subjects take turns. */
function inParallel(
  run: RunChains,
  subjects: readonly Subject[],
  pods: readonly TestNamespace[],
  { crowd: size, turns }: Pods,
): Times[] {
  const times = subjects.map((): Times => ({ add: [], del: [] }));
  for (let turn = 0; turn < turns; turn++) {
    const crowd = pods.slice(turn * size, (turn + 1) * size);
    for (const [index, subject] of subjects.entries()) {
      inNetns(subject.node.path, () => {
        const added = run(
          crowd.map((pod, number) => subject.add(pod, number)),
          LANES,
        );
        times[index]!.add.push(added.totalMs);
        const removals = crowd.map((pod, number) => subject.del(pod, number, added.outputs[number]!));
        times[index]!.del.push(run(removals, LANES).totalMs);
      });
    }
  }
  return times.map(({ add, del }) => ({ add: add.slice(1), del: del.slice(1) }));
}

function figures(
  { targets, headline, pods = PODS }: Series,
  single: readonly Times[],
  crowd: readonly Times[],
): Figure[] {
  const { add, del, parallel } = targets;
  const rows: readonly [what: string, times: readonly Times[], verb: 'add' | 'del', promised: Target | undefined][] = [
    ['ADD', single, 'add', add],
    ['DEL', single, 'del', del],
    [`${pods.crowd} ADDs, ${LANES} at a time`, crowd, 'add', parallel],
    [`${pods.crowd} DELs, ${LANES} at a time`, crowd, 'del', undefined],
  ];
  return rows.flatMap(([what, [reference, ...ours], verb, promised]) =>
    ours.map((times, index): Figure => {
      const target = index === 0 ? promised : undefined;
      return {
        what: `${what}, ${index === 0 ? 'shim and agent' : 'stand-alone'}`,
        unit: 'ms',
        ...inTurns(times[verb], reference![verb]),
        peerName: 'Debian’s reference plugins',
        ...(target && { target }),
        ...(headline && times === single[1] && { headline: `${what} of a pod, ${headline}` }),
      };
    }),
  );
}
