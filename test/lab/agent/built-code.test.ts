import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { runWatched } from '../built-code.ts';
import { createFolder, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';

afterEach(removeAll);

describe.each(['nodeplane', 'kube-proxy'])('%s', (name) => {
  const program = builtProgram(name);

  it('is compiled when it is built, for the flags it has when it loads that, and keeps its young generation small', () => {
    const { cache, young } = runWatched(name, ['--version']);
    expect(cache).toBe('taken');
    // Two semi-spaces; four times as much without the flag in its first line.
    expect(young).toBe(2 * 4 * 1024 * 1024);
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
