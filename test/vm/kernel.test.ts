import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterAll, describe, expect, it } from 'vitest';
import { KERNEL_FEATURES, whyMissing } from '../dataplane/kernel-features.ts';
import { removeAll } from '../lab/namespace.ts';

afterAll(removeAll);

describe('the machine of `npm run test:vm`', () => {
  it.each(KERNEL_FEATURES)('has %s', (feature) => {
    expect(whyMissing(feature)).toBeUndefined();
  });

  it('runs Debian’s own kernel', () => {
    expect(readFileSync('/proc/version', 'utf8')).toContain('Debian');
  });

  it('keeps what is written in memory', () => {
    const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
    const typeOf = (folder: string) => mounts.findLast((line) => line.split(' ')[1] === folder)?.split(' ')[2];
    expect([typeOf('/'), typeOf(process.cwd()), typeOf('/tmp'), typeOf('/run')]).toEqual([
      'overlay',
      'overlay',
      'tmpfs',
      'tmpfs',
    ]);
    expect(readdirSync(tmpdir()).length).toBeLessThan(20);
  });
});
