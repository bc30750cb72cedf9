import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Agent } from '../test/lab/lab.ts';
import { builtProgram } from '../test/lab/programs.ts';
import { type ApiCluster, peakResidentMiB, residentMiB, syncs, withApiCluster } from './api-cluster.ts';
import { sampleAddress } from './cluster.ts';
import { type Figure, inTurns, oursAtMost, percentile, report } from './report/index.ts';

const SERVICES = 10_000;
const ROUNDS = 5;
/** Tracked, to as many Services. */
const CONNECTIONS = 1000;
/** For the agent to hear what others have done. */
const HEARING_MS = 200;
/** Longer than the default least interval between syncs. */
const QUIET_MS = 3000;
/** Since its start: the agent has given back by then what only the start needed (TRIM_AFTER_MS, src/agent/run.ts). */
const TRIMMED_AFTER_MS = 65_000;
/** The agent compares the kernel with its plan this often, and what it reads for that is not to be counted to a question. */
const NO_COMPARISON = ['--iptables-sync-period', '1h'];
/** USER_HZ, in which /proc counts processor time. */
const TICKS_PER_SECOND = 100;

/** Of the kubelet, by the agent's manifests: every ten seconds. */
const PROBE_URL = 'http://127.0.0.1:10256/livez';

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
 * processor time of the command, of the programs it runs and of the agent, and by how much the agent grows meanwhile. The same of
 * `services --top`, and `diff` after others changed rules that are none of ours. The peer is the same program doing nothing.
 */
export async function benchExplain(only?: string): Promise<void> {
  for (const [mode, flags] of Object.entries(MODES)) {
    if (only === undefined ? mode !== SLOW : mode === only)
      await withApiCluster(SERVICES, (cluster) => benchMode(mode, flags, cluster));
  }
}

async function benchMode(mode: string, flags: readonly string[], { node, kubeconfig }: ApiCluster): Promise<void> {
  node.addPod('client');
  const began = Date.now();
  // Not until it has synced: iptables-nft takes minutes to load so many chains.
  const agent = await node.startAgent({
    flags: ['--kubeconfig', kubeconfig, ...NO_COMPARISON, ...flags],
    until: 'live',
  });
  while (syncs(agent, true).length === 0) await delay(QUIET_MS);
  await delay(Math.max(0, began + TRIMMED_AFTER_MS - Date.now()));
  await atRest(agent);
  const asked = QUESTIONS.map((): Cost[] => []);
  const [compared, top, started]: [Cost[], Cost[], Cost[]] = [[], [], []];
  const beforeProbe = residentMiB(agent);
  forgetPeak(agent);
  await node.httpGet(PROBE_URL, { timeoutMs: 10_000 });
  const probeGrowth = peakResidentMiB(agent) - beforeProbe;
  const growth: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const [number, question] of QUESTIONS.entries()) {
      const before = residentMiB(agent);
      forgetPeak(agent);
      asked[number]!.push(run(agent, 'explain', ...question, '-o', 'json'));
      growth.push(peakResidentMiB(agent) - before);
      started.push(run(agent, '--version'));
    }
  }
  await connectToServices();
  for (let round = 0; round < ROUNDS; round++) {
    execFileSync('nft', [`add table ip others; add chain ip others chain-${round}`]);
    await delay(HEARING_MS);
    compared.push(run(agent, 'diff'));
    top.push(run(agent, 'services', '--top'));
    started.push(run(agent, '--version'));
  }
  await agent.stop();
  // Of questions of several kinds the dearest kind counts.
  const figures = (what: string, kinds: readonly (readonly Cost[])[], most: Partial<Cost>): Figure[] => {
    const of = (which: keyof Cost) => {
      const values = (costs: readonly Cost[]) => costs.map((cost) => cost[which]);
      const turns = kinds
        .map((costs) => inTurns(values(costs), values(started), quiet))
        .sort((a, b) => b.ours - a.ours)[0]!;
      const target = most[which];
      return {
        ...turns,
        unit: 'ms',
        peerName: 'a start and nothing more',
        ...(target && { target: oursAtMost(target) }),
      };
    };
    return [
      { what: `${what}, wall time`, ...of('wallMs') },
      { what: `${what}, processor time with the agent’s`, ...of('cpuMs') },
    ];
  };
  const grown = (what: string, ours: number, target?: Figure['target']): Figure => ({
    what,
    unit: 'MiB',
    ours,
    peer: undefined,
    peerName: '',
    ...(target && { target }),
  });
  report(`explain, ${SERVICES} x 10, ${mode}`, [
    ...figures('the dearest question', asked, { wallMs: 300, cpuMs: 2000 }),
    // Pages of Node.js's program that were given back after the start (trimAfterStart) come back with the first thing to do.
    grown('the agent’s growth, a health probe after a rest', probeGrowth),
    grown('the agent’s growth, the first question', growth[0]!, oursAtMost(5)),
    grown('the agent’s growth, the most of all later ones', Math.max(...growth.slice(1)), oursAtMost(5)),
    ...figures('diff, after others changed theirs', [compared], {}),
    ...figures(`services --top, ${CONNECTIONS} connections`, [top], {}),
  ]);
}

/** The first sync has an aftermath: rules of the other family, what others did meanwhile. */
async function atRest(agent: Agent): Promise<void> {
  for (let last = -1; last !== cpuMsOf(agent); await delay(QUIET_MS)) last = cpuMsOf(agent);
}

/** Nobody answers: what is tracked is the attempt. */
async function connectToServices(): Promise<void> {
  const sockets = Array.from({ length: CONNECTIONS }, (_, n) => connect(80, sampleAddress(96, n)));
  for (const socket of sockets) socket.on('error', () => {});
  await delay(QUIET_MS);
  for (const socket of sockets) socket.destroy();
}

/**
 * Runs the program in the namespace that this thread is in; bash tells its processor time and that of all it has waited for.
 *
 * @throws when it does not answer: 0, 1 and 2 are answers
 */
function run(agent: Agent, ...args: string[]): Cost {
  const script = 'TIMEFORMAT="%R %U %S"; time "$@"';
  const agentBefore = cpuMsOf(agent);
  // Node.js would read all certificates at every start, for nothing; no node of a cluster has this set.
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const { stderr, status } = spawnSync('bash', ['-c', script, 'bash', builtProgram('nodeplane'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    env,
  });
  const [wall, user, system] = (/^([\d.]+) ([\d.]+) ([\d.]+)$/m.exec(stderr) ?? []).slice(1).map(Number);
  if (wall === undefined || status === null || status > 2) throw new Error(`nodeplane ${args.join(' ')}: ${stderr}`);
  return { wallMs: wall * 1000, cpuMs: (user! + system!) * 1000 + cpuMsOf(agent) - agentBefore };
}

/** proc_pid_stat(5): utime, stime and the same of the programs it has run, fields 14 to 17, behind the name in parentheses. */
function cpuMsOf({ pid }: Agent): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) * 1000) / TICKS_PER_SECOND;
}

/** proc_pid_clear_refs(5), 5: what it takes now counts as the most it ever took. */
function forgetPeak({ pid }: Agent): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}
