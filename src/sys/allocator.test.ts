import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { allocateForKernel, trimAfterStart, unwrittenMappings } from './allocator.ts';

const details = (anonymous: number) => `Rss:                1528 kB
Anonymous:       ${String(anonymous).padStart(8)} kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
`;

it('drops pages of files alone, and only where nobody has written', () => {
  const smaps = [
    `00400000-01c00000 r--p 00000000 08:01 123                      /usr/local/bin/node\n${details(0)}`,
    `01c00000-03b00000 r-xp 01800000 08:01 123                      /usr/local/bin/node\n${details(0)}`,
    `03b00000-03b10000 r--p 03700000 08:01 123                      /usr/local/bin/node\n${details(8)}`,
    `03b10000-03b20000 rw-p 03710000 08:01 123                      /usr/local/bin/node\n${details(0)}`,
    `7f0000000000-7f0000200000 r-xp 00000000 00:00 0 \n${details(0)}`,
    `7ffd0000a000-7ffd0000c000 r-xp 00000000 00:00 0                [vdso]\n${details(0)}`,
  ].join('');
  expect(unwrittenMappings(smaps)).toEqual([
    { start: 0x400000n, end: 0x1c00000n },
    { start: 0x1c00000n, end: 0x3b00000n },
  ]);
});

it('leaves a program that goes on', () => {
  trimAfterStart();
  expect(JSON.parse('[1]')).toEqual([1]);
  trimAfterStart();
});

it('asks for huge pages for what is large', () => {
  /** proc_pid_smaps(5): `hg` of VmFlags. */
  const bytesAsked = () =>
    readFileSync('/proc/self/smaps', 'latin1')
      .split(/^(?=[0-9a-f]+-)/m)
      .filter((mapping) => /^VmFlags:.* hg/m.test(mapping))
      .reduce((sum, mapping) => sum + 1024 * Number(/^Size: +(\d+) kB$/m.exec(mapping)![1]), 0);
  const before = bytesAsked();
  const large = allocateForKernel(9 << 20);
  const asked = bytesAsked() - before;
  expect(large).toHaveLength(9 << 20);
  // Where huge pages begin and end: at both ends less than one is left out.
  expect(asked).toBeGreaterThanOrEqual(existsSync('/sys/kernel/mm/transparent_hugepage') ? 6 << 20 : 0);
  expect(allocateForKernel(100)).toHaveLength(100);
  expect(bytesAsked() - before).toBe(asked);
});
