import { defineConfig } from 'vitest/config';

// Two projects: `unit` runs anywhere in milliseconds; `lab` needs root, network namespaces and the built programs in dist/.
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['src/**/*.test.ts', 'test/fakes/**/*.test.ts', 'test/deploy/**/*.test.ts'] } },
      {
        test: {
          name: 'lab',
          include: ['test/lab/**/*.test.ts', 'test/dataplane/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // What is waited for comes in milliseconds on a quiet machine; a busy one may take its time.
          expect: { poll: { timeout: 20_000, interval: 20 } },
          // One process a file: entering a network namespace is a property of the thread.
          pool: 'forks',
          maxWorkers: 2,
        },
      },
    ],
  },
});
