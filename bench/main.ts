import { availableParallelism, loadavg } from 'node:os';
import { removeAll } from '../test/lab/lab.ts';
import { benchChurn } from './churn.ts';
import { benchCni, benchCniNodes, benchCniStandard } from './cni.ts';
import { benchCniBurst } from './cni-burst.ts';
import { benchEvidence } from './evidence.ts';
import { benchExplain } from './explain.ts';
import { benchFirstPacket } from './first-packet.ts';
import { benchHostile } from './hostile/index.ts';
import { benchIncremental } from './incremental.ts';
import { benchIpam } from './ipam.ts';
import { benchIptables, benchIptablesNft5000 } from './iptables.ts';
import { benchIpvs } from './ipvs.ts';
import { benchManifestEdit } from './manifest-edit.ts';
import { benchMemory } from './memory.ts';
import { benchNftables } from './nftables.ts';
import { benchPackets } from './packets.ts';
import { benchReadApi } from './read-api.ts';
import { reports } from './report/index.ts';
import { writeResults } from './report/results.ts';
import { surroundings } from './report/surroundings.ts';
import { benchRoutes } from './routes/index.ts';
import { benchScale, benchScaleNftables } from './scale.ts';
import { benchEmpty, benchRest, benchStart } from './start/index.ts';

interface Benchmark {
  /** @param only what the names of its cases must hold, for benchmarks that have cases with names */
  readonly run: (only?: string) => Promise<void>;
  /** Takes minutes: it runs only when it is named. @default false */
  readonly slow?: boolean;
}

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  iptables: { run: benchIptables },
  'iptables-nft-5000': { run: benchIptablesNft5000, slow: true },
  // Needs the VM's kernel.
  ipvs: { run: benchIpvs, slow: true },
  nftables: { run: benchNftables },
  incremental: { run: benchIncremental },
  evidence: { run: benchEvidence },
  explain: { run: benchExplain },
  'first-packet': { run: benchFirstPacket },
  'manifest-edit': { run: benchManifestEdit },
  scale: { run: benchScale },
  'scale-nftables': { run: benchScaleNftables },
  start: { run: benchStart },
  // Nine minutes of watching; `rest:60` watches for one in place of five.
  rest: { run: benchRest, slow: true },
  empty: { run: benchEmpty, slow: true },
  // Three minutes; `churn:180` takes nine, `churn:nftables:FOLDER` another build by turns.
  churn: { run: benchChurn },
  memory: { run: benchMemory },
  hostile: { run: benchHostile, slow: true },
  cni: { run: benchCni },
  // A part of it.
  'cni-standard': { run: benchCniStandard, slow: true },
  'cni-nodes': { run: benchCniNodes, slow: true },
  'cni-burst': { run: benchCniBurst, slow: true },
  ipam: { run: benchIpam },
  'read-api': { run: benchReadApi },
  packets: { run: benchPackets },
  routes: { run: benchRoutes },
};

/** What `--help` prints. */
function usage(): string {
  const names = (slow: boolean) => Object.keys(BENCHMARKS).filter((name) => (BENCHMARKS[name]!.slow ?? false) === slow);
  return `npm run bench                               all but the slow ones, into bench/RESULTS.md
npm run bench -- NAME …                     some
npm run bench -- 'hostile:nftables IPv4'    a part of one

${names(false).join(', ')}
slow: ${names(true).join(', ')}
`;
}

async function main(names: readonly string[]): Promise<void> {
  const parts = names.map((name): [string, string | undefined] => {
    const colon = name.indexOf(':');
    return colon < 0 ? [name, undefined] : [name.slice(0, colon), name.slice(colon + 1)];
  });
  const unknown = parts.map(([name]) => name).find((name) => !Object.hasOwn(BENCHMARKS, name));
  if (unknown !== undefined) {
    throw new Error(`Cannot run benchmark "${unknown}": there are ${Object.keys(BENCHMARKS).join(', ')}`);
  }
  const [load, processors] = [loadavg()[0]!, availableParallelism()];
  if (load > processors / 2) {
    process.stderr.write(
      `The machine is busy (load ${load} on ${processors} processors): targets may be missed for that\n`,
    );
  }
  for (const [name, only] of parts) await BENCHMARKS[name]!.run(only);
}

/** Every benchmark that is not slow; what they tell is kept in the folder this runs in, the project's. */
async function runAll(): Promise<void> {
  const [begun, load] = [Date.now(), loadavg()[0]!];
  await main(Object.keys(BENCHMARKS).filter((name) => !BENCHMARKS[name]!.slow));
  const minutes = (Date.now() - begun) / 60_000;
  const date = new Date(begun).toISOString().slice(0, 10);
  writeResults(process.cwd(), { date, ...surroundings(), load, minutes, reports: reports() });
}

// Reading a whole machine's certificates is no part of what an agent's start costs.
delete process.env.NODE_EXTRA_CA_CERTS;

const named = process.argv.slice(2);
if (named.includes('--help')) {
  process.stdout.write(usage());
} else {
  (named.length > 0 ? main(named) : runAll()).finally(removeAll).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
}
