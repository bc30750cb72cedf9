import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { watchUnanswered } from '../src/netlink/conntrack/index.ts';
import { watchCommits } from '../src/netlink/nftables/index.ts';
import { inNetns } from '../src/sys/index.ts';
import { createFolder, createNamespace, type TestNamespace } from '../test/lab/namespace.ts';
import { inTurns, oursAtMost, percentile, report } from './report/index.ts';

const EXCHANGES = 5000;
const TURNS = 48;
/** A busy node. */
const FLOWS_PER_SECOND = 1000;

/** What else runs on the machine only makes a turn dearer: the cheaper ones are nearer to what it takes. */
const quiet = (values: readonly number[]) => percentile(values, 10);

/** What listening to connection tracking and to changes of rules costs for each new flow: processor time, with and without it. */
export async function benchEvidence(): Promise<void> {
  const namespace = createNamespace('evidence');
  namespace.run('ip', 'link', 'set', 'lo', 'up');
  namespace.run(
    'nft',
    'add table ip track; add chain ip track c { type filter hook input priority 0; }; add rule ip track c ct state new counter',
  );
  const program = compile(createFolder('evidence').path);
  const costs = { with: [] as number[], without: [] as number[] };
  const own = { with: [] as number[], without: [] as number[] };
  for (let turn = 0; turn < 2 * TURNS; turn++) {
    // ABBA: what gets slower over time disturbs both alike.
    const listens = (turn >> 1) % 2 === turn % 2;
    const kind = listens ? 'with' : 'without';
    const stop = listens ? listen(namespace) : () => {};
    const before = process.cpuUsage();
    const exchanges = promisify(execFile)('ip', ['netns', 'exec', namespace.name, program, String(EXCHANGES)]);
    costs[kind].push(Number((await exchanges).stdout) / EXCHANGES);
    const { user, system } = process.cpuUsage(before);
    own[kind].push((user + system) / EXCHANGES);
    stop();
  }
  const perFlow = inTurns(costs.with, costs.without, quiet);
  const share = (more: number) => Math.max(0, (more * FLOWS_PER_SECOND) / 1e4);
  const figures = [
    { what: 'a flow, begun, answered and forgotten', unit: 'us', ...perFlow, peerName: 'without a listener' },
    {
      what: `more for the kernel at ${FLOWS_PER_SECOND} flows a second`,
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

function listen(namespace: TestNamespace): () => void {
  const after = (fn: () => void, ms: number) => {
    const timer = setTimeout(fn, ms);
    return { cancel: () => clearTimeout(timer) };
  };
  const [flows, commits] = inNetns(namespace.path, () => [
    watchUnanswered(() => {}, { now: () => performance.now(), after }),
    watchCommits(() => {}),
  ]);
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
