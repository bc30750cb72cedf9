import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Agent } from '../test/lab/lab.ts';
import { builtProgram } from '../test/lab/programs.ts';
import { type ApiCluster, peakResidentMiB, residentMiB, syncs, withApiCluster } from './api-cluster.ts';
import { sampleAddress } from './cluster.ts';
import { type Figure, inTurns, oursAtMost, percentile, report } from './report/index.ts';

const SERVICES = 10_000;
const ROUNDS = 5;
/** Longer than the default least interval between syncs. */
const QUIET_MS = 3000;
/** USER_HZ, in which /proc counts processor time. */
const TICKS_PER_SECOND = 100;

const MODES: Readonly<Record<string, readonly string[]>> = {
  nftables: ['--proxy-mode', 'nftables'],
  'iptables-nft': ['--proxy-mode', 'iptables', '--iptables-variant', 'nft'],
  'iptables-legacy': ['--proxy-mode', 'iptables', '--iptables-variant', 'legacy'],
};

/** Loading its rules takes minutes: it runs only when it is named, `explain:iptables-nft`. */
const SLOW = 'iptables-nft';

/** What else runs on the machine only makes a question dearer: the cheaper ones are nearer to what it takes. */
const quiet = (values: readonly number[]) => percentile(values, 10);

/** A Service by its name and by its address, one of its pods, and a name that is not there but is like thousands. */
const QUESTIONS: readonly (readonly string[])[] = [
  ['svc/bench/service-4711'],
  [`${sampleAddress(96, 8_000)}:80`],
  ['10.201.37.3:8080'],
  ['svc/bench/servce-4711'],
];

interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/**
 * What a question costs at 10,000 Services of ten endpoints, from the start of the command to its end: time on the wall,
 * processor time of the command, of the programs it runs and of the agent, and by how much the agent grows meanwhile. The peer
 * is the same program doing nothing.
 */
export async function benchExplain(only?: string): Promise<void> {
  for (const [mode, flags] of Object.entries(MODES)) {
    if (only === undefined ? mode !== SLOW : mode === only)
      await withApiCluster(SERVICES, (cluster) => benchMode(mode, flags, cluster));
  }
}

async function benchMode(mode: string, flags: readonly string[], { node, kubeconfig }: ApiCluster): Promise<void> {
  node.addPod('client');
  // Not until it has synced: iptables-nft takes minutes to load so many chains.
  const agent = await node.startAgent({ flags: ['--kubeconfig', kubeconfig, ...flags], until: 'live' });
  while (syncs(agent, true).length === 0) await delay(QUIET_MS);
  await delay(QUIET_MS);
  const before = residentMiB(agent);
  forgetPeak(agent);
  const asked: Cost[] = [];
  const started: Cost[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const question of QUESTIONS) {
      const agentBefore = cpuMsOf(agent);
      const cost = await run('explain', ...question, '-o', 'json');
      asked.push({ ...cost, cpuMs: cost.cpuMs + cpuMsOf(agent) - agentBefore });
      started.push(await run('--version'));
    }
  }
  const growth = peakResidentMiB(agent) - before;
  await agent.stop();
  const of = (what: keyof Cost) => [asked.map((cost) => cost[what]), started.map((cost) => cost[what])] as const;
  const peerName = 'a start and nothing more';
  const figures: Figure[] = [
    {
      what: 'a question, wall time',
      unit: 'ms',
      ...inTurns(...of('wallMs'), quiet),
      peerName,
      target: oursAtMost(300),
    },
    {
      what: 'a question, processor time with the agent’s',
      unit: 'ms',
      ...inTurns(...of('cpuMs'), quiet),
      peerName,
      target: oursAtMost(2000),
    },
    {
      what: 'the agent’s growth while it answers',
      unit: 'MiB',
      ours: growth,
      peer: undefined,
      peerName: '',
      target: oursAtMost(5),
    },
  ];
  report(`explain, ${SERVICES} x 10, ${mode}`, figures);
}

/**
 * Runs the program in the namespace that this thread is in; bash tells its processor time and that of all it has waited for.
 *
 * @throws when it does not answer: 0, 1 and 2 are answers
 */
function run(...args: string[]): Cost {
  const script = 'TIMEFORMAT="%R %U %S"; time "$@"';
  const { stderr, status } = spawnSync('bash', ['-c', script, 'bash', builtProgram('nodeplane'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
  });
  const [wall, user, system] = (/^([\d.]+) ([\d.]+) ([\d.]+)$/m.exec(stderr) ?? []).slice(1).map(Number);
  if (wall === undefined || status === null || status > 2) throw new Error(`nodeplane ${args.join(' ')}: ${stderr}`);
  return { wallMs: wall * 1000, cpuMs: (user! + system!) * 1000 };
}

/** proc_pid_stat(5): utime and stime, fields 14 and 15, behind the name in parentheses. */
function cpuMsOf({ pid }: Agent): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}

/** proc_pid_clear_refs(5), 5: what it takes now counts as the most it ever took. */
function forgetPeak({ pid }: Agent): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}
