import { setImmediate as turn } from 'node:timers/promises';
import type { IpFamily } from '../../src/core/index.ts';
import type { Service } from '../../src/kube/index.ts';
import { useOwnLockFile } from '../../test/lab/iptables/fixtures.ts';
import { type LongestBlock, LoopMeter, settledMemory } from '../loop-meter.ts';
import { type Figure, ratioAtMost, report } from '../report/index.ts';
import { CASES, type HostileCase } from './cases.ts';
import { type SubjectMode, startNode } from './subject.ts';

/** What no single object may exceed. */
const MAX_BLOCK_MS = 50;
const MAX_KEPT_MIB = 64;
/** The best of so many rounds counts: what else runs on the machine only ever adds. */
const ROUNDS = 3;
const MODES: readonly SubjectMode[] = ['nftables', 'iptables', 'ipvs'];
const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

/** What one case cost one mode. */
interface Measured {
  readonly block: LongestBlock;
  /** How much memory the objects keep, their plan and what was compiled of them included. */
  readonly keptMiB: number;
  /** From the first byte of the objects to their last sync after they are gone. */
  readonly seconds: number;
}

/**
 * What objects somebody may create to do harm cost: how long the event loop stood still, in all that becomes of them (read,
 * planned, synced, changed, synced in full, verified, removed), and how much memory they take.
 *
 * @param only what mode, family and case must hold, as in `nftables IPv4 1,000 slices`. @default every case
 */
export async function benchHostile(only = ''): Promise<void> {
  useOwnLockFile();
  // The agent's timers do not keep a process alive.
  const alive = setInterval(() => {}, 1000);
  try {
    await measureAll(only);
  } finally {
    clearInterval(alive);
  }
}

async function measureAll(only: string): Promise<void> {
  for (const mode of MODES) {
    for (const family of FAMILIES) {
      const figures: Figure[] = [];
      const cases = CASES.filter(({ name }) => `${mode} ${family} ${name}`.includes(only));
      if (cases.length === 0) continue;
      for (const each of cases) figures.push(...figuresOf(each, await best(each, mode, family)));
      report(`hostile objects, ${mode}, ${family}`, figures);
    }
  }
}

function figuresOf({ name, wholeCluster = false }: HostileCase, { block, keptMiB, seconds }: Measured): Figure[] {
  const bound = { peerName: 'the bound', target: ratioAtMost(1) };
  const memory = { what: `${name}: memory kept`, unit: 'MiB', ours: Math.max(0, keptMiB), peer: MAX_KEPT_MIB };
  const what = `${name}, ${seconds.toFixed(1)} s in all: longest block, in ${block.during}`;
  return [
    { what, unit: 'ms', ours: block.ms, peer: MAX_BLOCK_MS, ...bound },
    wholeCluster ? { ...memory, peerName: 'the bound of one object' } : { ...memory, ...bound },
  ];
}

async function best(each: HostileCase, mode: SubjectMode, family: IpFamily): Promise<Measured> {
  let result: Measured | undefined;
  for (let round = 0; round < ROUNDS; round++) {
    const measured = await measure(each, mode, family);
    if (!result || measured.block.ms < result.block.ms) result = measured;
    if (result.block.ms <= MAX_BLOCK_MS && result.keptMiB <= MAX_KEPT_MIB) break;
  }
  return result!;
}

async function measure(each: HostileCase, mode: SubjectMode, family: IpFamily): Promise<Measured> {
  const meter = new LoopMeter();
  const node = await startNode(mode, family, meter);
  try {
    const objects = each.objects(family);
    const added = node.api.encode('ADDED', objects);
    const service = objects.find((object) => object.kind === 'Service')!;
    const changed: Service = { ...service, spec: { ...service.spec, internalTrafficPolicy: 'Local' } };
    const modified = node.api.encode('MODIFIED', [changed]);
    const deleted = node.api.encode('DELETED', objects);
    const before = await settledMemory();
    meter.start();
    const started = performance.now();
    await node.afterSync(added);
    const keptMiB = (await settledMemory()) - before;
    await node.afterSync(modified);
    await node.resync();
    await node.verify();
    await node.afterSync(deleted);
    await turn();
    const { longest } = meter.stop();
    return { block: longest, keptMiB, seconds: (performance.now() - started) / 1000 };
  } finally {
    await node.stop();
  }
}
