import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { UNANSWERED_BOUNDS, watchUnanswered } from '../src/netlink/conntrack/index.ts';
import { watchCommits } from '../src/netlink/nftables/index.ts';
import { inNetns } from '../src/sys/index.ts';
import { createFolder, createNamespace, type TestNamespace } from '../test/lab/namespace.ts';
import { inTurns, oursAtMost, percentile, ratioAtMost, report } from './report/index.ts';

const EXCHANGES = 5000;
const TURNS = 48;
/** A busy node. */
const FLOWS_PER_SECOND = 1000;
/**
 * Of these, on average: then nobody listens until a period ends, and a flow costs what it costs without a listener, as
 * is measured too.
 */
const LISTENED_PER_SECOND = Math.min(
  FLOWS_PER_SECOND,
  UNANSWERED_BOUNDS.allFlows / (UNANSWERED_BOUNDS.periodMs / 1000),
);

/** What else runs on the machine only makes a turn dearer: the cheaper ones are nearer to what it takes. */
const quiet = (values: readonly number[]) => percentile(values, 10);

/** Of so many flows some are counted, as one of a thousand is, by chance. */
const TOO_MANY = 20_000;

/** Whether anybody listens to the flows that end; `resting`: no more, as too many have. */
type Listening = 'with' | 'resting' | 'without';

/** What listening to connection tracking and to changes of rules costs for each new flow: processor time, with and without it. */
export async function benchEvidence(): Promise<void> {
  const namespace = createNamespace('evidence');
  namespace.run('ip', 'link', 'set', 'lo', 'up');
  namespace.run(
    'nft',
    'add table ip track; add chain ip track c { type filter hook input priority 0; }; add rule ip track c ct state new counter',
  );
  const program = compile(createFolder('evidence').path);
  const exchange = async (count: number) =>
    Number((await promisify(execFile)('ip', ['netns', 'exec', namespace.name, program, String(count)])).stdout) / count;
  const costs: Record<Listening, number[]> = { with: [], resting: [], without: [] };
  const own: Record<Listening, number[]> = { with: [], resting: [], without: [] };
  const measure = async (kind: Listening) => {
    const stop = kind === 'without' ? () => {} : await listen(namespace, kind === 'resting' ? exchange : undefined);
    const before = process.cpuUsage();
    costs[kind].push(await exchange(EXCHANGES));
    const { user, system } = process.cpuUsage(before);
    own[kind].push((user + system) / EXCHANGES);
    stop();
  };
  // There and back: what gets slower over time disturbs all alike.
  const kinds = ['with', 'without'] as const;
  for (let turn = 0; turn < TURNS; turn++) {
    for (const kind of turn % 2 === 0 ? kinds : kinds.toReversed()) await measure(kind);
    if (turn % 4 === 0) await measure('resting');
  }
  const peerOf = (kind: Listening) => inTurns(costs[kind], costs.without, quiet);
  const [perFlow, perFlowResting] = [peerOf('with'), peerOf('resting')];
  const share = (more: number) => Math.max(0, (more * LISTENED_PER_SECOND) / 1e4);
  const figures = [
    { what: 'a flow, begun, answered and forgotten', unit: 'us', ...perFlow, peerName: 'without a listener' },
    {
      what: 'the same, when too many were',
      unit: 'us',
      ...perFlowResting,
      peerName: 'without a listener',
      target: ratioAtMost(1.03),
    },
    {
      what: `more for the kernel at ${FLOWS_PER_SECOND} flows a second or more`,
      unit: '% of a core',
      ours: share(perFlow.ours - perFlow.peer),
      peer: undefined,
      peerName: '',
      target: oursAtMost(0.2),
    },
    {
      what: 'more for the agent itself',
      unit: '% of a core',
      ours: share(quiet(own.with) - quiet(own.without)),
      peer: undefined,
      peerName: '',
      target: oursAtMost(0.2),
    },
  ];
  namespace.remove();
  report('evidence', figures);
}

/** @param flood has so many flows begin and end; given: enough of them that it listens no more */
async function listen(namespace: TestNamespace, flood?: (count: number) => Promise<number>): Promise<() => void> {
  const after = (fn: () => void, ms: number) => {
    const timer = setTimeout(fn, ms);
    return { cancel: () => clearTimeout(timer) };
  };
  const most = flood ? { allFlows: 1, periodMs: 60_000 } : { allFlows: Number.POSITIVE_INFINITY };
  const bounds = { now: () => performance.now(), after, ...most };
  const [flows, commits] = inNetns(namespace.path, () => [watchUnanswered(() => {}, bounds), watchCommits(() => {})]);
  if (flood) {
    await flood(TOO_MANY);
    flows.catchUp();
    if (flows.cutShort === 0) throw new Error(`It listens still, after ${TOO_MANY} flows`);
  }
  return () => {
    flows.close();
    commits.close();
  };
}

function compile(folder: string): string {
  const program = join(folder, 'evidence-flows');
  // The same from dist/ as from this folder.
  const source = fileURLToPath(new URL('../bench/evidence-flows.c', import.meta.url));
  execFileSync(process.env.CC ?? 'cc', ['-O2', '-o', program, source]);
  return program;
}
