import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { PATIENCE } from './test/lab/patience.ts';
import { SpreadFiles } from './test/spread-files.ts';

const SETUP = ['test/fixed-seed.ts'];
const KERNEL_SETUP = [...SETUP, 'test/first-netns.ts'];
const ALONE = 'test/vm/alone/*.test.ts';

/** What tests with real kernels have in common. */
const KERNEL = {
  setupFiles: KERNEL_SETUP,
  testTimeout: 60_000 * PATIENCE,
  hookTimeout: 60_000 * PATIENCE,
  // What is waited for comes in milliseconds on a quiet machine; a busy one may take its time.
  // To look takes a while as well: in the VM, at this rate, most of a processor's time.
  expect: { poll: { timeout: 20_000 * PATIENCE, interval: 40 * PATIENCE } },
  // Processes, not threads: entering a network namespace is a property of the thread.
  pool: 'forks',
  // Loading the modules for each file anew takes as long as many of them take; in the VM it is half a minute.
  isolate: false,
  maxWorkers: 2,
} as const;

/** What tests in the VM have in common. */
const VM = {
  ...KERNEL,
  // On a busy machine an agent takes a minute there to start, work and end, and some tests have three.
  testTimeout: 600_000,
  hookTimeout: 600_000,
} as const;

// `unit` runs anywhere in milliseconds. `lab` needs root, network namespaces and the built programs in dist/. `vm` is for
// the kernel of `npm run test:vm` (docs/testing.md), which has all that the kernel at hand may lack. `cri` needs container
// runtimes (scripts/setup) too.
export default defineConfig({
  test: {
    sequence: { sequencer: SpreadFiles },
    // Each project, and the VM with its slow processors, would transform the same modules anew. Files are named by what is in them.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.cache/vitest' },
    projects: [
      {
        test: {
          name: 'unit',
          setupFiles: SETUP,
          include: ['{src,bench,test/fakes,test/deploy}/**/*.test.ts'],
          // Loading the same modules for each file anew took longer than the tests.
          isolate: false,
          // Of vitest's own one of two processors did nothing for half of the time.
          maxWorkers: Math.max(3, availableParallelism() - 1),
          // The slowest take 4 s on a quiet machine.
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'lab',
          include: ['test/lab/**/*.test.ts', 'test/dataplane/**/*.test.ts'],
          ...KERNEL,
          // With two files at a time two processors did nothing for half of the time: many tests wait for what must not come.
          maxWorkers: 6,
          // Vitest wants one for each number of workers.
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'vm',
          include: ['test/vm/**/*.test.ts', 'test/dataplane/**/*.test.ts'],
          // Nothing in these needs the other kernel, and emulated processors are slow.
          exclude: [
            ALONE,
            ...['ownership-*', 'continuity-*', 'simulation'].map((name) => `test/dataplane/${name}.test.ts`),
          ],
          ...VM,
        },
      },
      // What is seen in all namespaces of the machine would disturb others: it comes after them.
      { test: { name: 'vm-alone', include: [ALONE], ...VM, maxWorkers: 1, sequence: { groupOrder: 1 } } },
      { test: { name: 'optin', include: ['test/optin/**/*.test.ts'], ...KERNEL } },
      { test: { name: 'cri', include: ['test/cri/**/*.test.ts'], ...KERNEL, testTimeout: 180_000 * PATIENCE } },
    ],
  },
});
