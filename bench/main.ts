import { removeAll } from '../test/lab/lab.ts';
import { benchIptables } from './iptables.ts';
import { benchManifestEdit } from './manifest-edit.ts';
import { benchScale } from './scale.ts';

/** `npm run bench` runs all of them, `npm run bench -- NAME …` some. */
const BENCHMARKS: Readonly<Record<string, () => Promise<void>>> = {
  iptables: benchIptables,
  'manifest-edit': benchManifestEdit,
  // The last: it moves this process into a network namespace.
  scale: benchScale,
};

async function main(names: readonly string[]): Promise<void> {
  for (const name of names) {
    const run = BENCHMARKS[name];
    if (!run) throw new Error(`Cannot run benchmark "${name}": there are ${Object.keys(BENCHMARKS).join(', ')}`);
    await run();
  }
}

const named = process.argv.slice(2);
main(named.length > 0 ? named : Object.keys(BENCHMARKS))
  .finally(removeAll)
  .catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
