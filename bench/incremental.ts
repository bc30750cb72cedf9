import { IptablesDataplane } from '../src/proxy/iptables/index.ts';
import { recordingExec } from '../test/lab/iptables/fixtures.ts';
import { ENDPOINTS, startProxy } from './changing-proxy.ts';
import { type Figure, inTurns, median, oursAtMost, ratioAtMost, report } from './report/index.ts';

const MANY = 10_000;
const FEW = 100;
const CHANGES = 400;
/** Until the compiler has seen enough of the code to optimise it. */
const WARM_UP = 400;

interface Measured {
  readonly ms: number;
  readonly bytes: number;
}

/**
 * The work in this process for one changed endpoint, from the object event to the text for iptables-restore, which is
 * answered at once: at 10,000 Services, and at 100 in turns in the same run.
 */
export async function benchIncremental(): Promise<void> {
  const many = await startRecorded(MANY);
  const few = await startRecorded(FEW);
  const inMany: Measured[] = [];
  const inFew: Measured[] = [];
  for (let change = 0; change < WARM_UP + CHANGES; change++) {
    const counts = change >= WARM_UP;
    for (const [proxy, into] of [[many, inMany] as const, [few, inFew] as const]) {
      const measured = await proxy.changeOneEndpoint(change);
      if (counts) into.push(measured);
    }
  }
  await many.stop();
  await few.stop();
  const peerName = `at ${FEW} Services`;
  const times = inTurns(
    inMany.map(({ ms }) => ms),
    inFew.map(({ ms }) => ms),
  );
  const bytes = (which: string, of: (values: readonly number[]) => number): Figure => ({
    what: `restore input, ${which}`,
    unit: 'bytes',
    ours: of(inMany.map((measured) => measured.bytes)),
    peer: of(inFew.map((measured) => measured.bytes)),
    peerName,
    target: oursAtMost(4096),
  });
  report(`incremental, ${MANY} x ${ENDPOINTS}, ${CHANGES} changes`, [
    { what: 'event to restore text, median', unit: 'ms', ...times, peerName, target: ratioAtMost(1.5, 'goal 2 ms') },
    bytes('median', median),
    bytes('largest', (values) => Math.max(...values)),
  ]);
}

/** A proxy whose iptables answers at once, and remembers what it was given. */
async function startRecorded(services: number) {
  const { exec, restores } = recordingExec(async () => ({ status: 0, stdout: '', stderr: '' }));
  const proxy = await startProxy(services, new IptablesDataplane({ family: 'IPv4', variant: 'legacy', exec }));
  return {
    async changeOneEndpoint(change: number): Promise<Measured> {
      const before = restores.length;
      const ms = await proxy.changeOneEndpoint(change);
      if (restores.length !== before + 1)
        throw new Error(`The change led to ${restores.length - before} restores instead of one`);
      return { ms, bytes: Buffer.byteLength(restores.at(-1)!) };
    },
    stop: () => proxy.stop(),
  };
}
