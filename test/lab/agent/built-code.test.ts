import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { isCacheTaken } from '../built-code.ts';
import { createFolder, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';

afterEach(removeAll);

describe.each(['nodeplane', 'kube-proxy'])('%s', (name) => {
  const program = builtProgram(name);

  it('is compiled when it is built, for the flags in its first line', () => {
    const flags = /^#!\/usr\/bin\/env -S node (.*)$/m.exec(readFileSync(program, 'utf8'))![1]!.split(' ');
    expect(isCacheTaken(name, flags)).toBe(true);
  });

  it('says which file is missing when it is copied alone', () => {
    const copy = join(createFolder('alone').path, name);
    copyFileSync(program, copy);
    const { status, stderr } = spawnSync('node', [copy, '--version'], { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining(`"${copy}.code"`) });
    for (const file of [`${name}.code`, 'package.json'])
      copyFileSync(join(program, '..', file), join(copy, '..', file));
    expect(execFileSync('node', [copy, '--version'], { encoding: 'utf8' })).toMatch(/\d+\.\d+/);
  });
});
