import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { HEADER_BYTES, readBuiltCode, runWatched } from '../built-code.ts';
import { createFolder, createNamespace, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { createNode } from './fixture.ts';

afterEach(removeAll);

const PROGRAM = 'nodeplane-cni';

it('is a small program', () => {
  // It is read for every pod: a dependency that slips in is paid for each time.
  const { file, codeAt } = readBuiltCode(PROGRAM);
  expect(file.length - codeAt).toBeLessThan(400_000);
});

it('is compiled when it is built, not for every pod', () => {
  const { builtWith } = readBuiltCode(PROGRAM);
  expect(builtWith).toBe(process.version);
  expect(runWatched(PROGRAM, [], { CNI_COMMAND: 'VERSION' })).toMatchObject({ cache: 'taken' });
});

it('runs on another Node.js than the one it was built with', async () => {
  const { file, codeAt } = readBuiltCode(PROGRAM);
  // What another V8 made may be taken for good: a cache of other code of the same length is.
  const stale = execFileSync('node', [
    '-e',
    `const code = '(function () { process.stdout.write("stale"); })'.padEnd(${file.length - codeAt});
     process.stdout.write(new (require('node:vm').Script)(code).createCachedData());`,
  ]);
  const pluginBuiltWith = (version: string) => {
    const folder = createFolder('plugin').path;
    const at = (name: string) => join(folder, name);
    for (const name of ['nodeplane-cni', 'koffi.node', 'package.json']) copyFileSync(builtProgram(name), at(name));
    chmodSync(at('nodeplane-cni'), 0o755);
    const header = `${version} ${stale.length}`.padEnd(HEADER_BYTES - 1);
    writeFileSync(at('nodeplane-cni.code'), Buffer.concat([Buffer.from(`${header}\n`), stale, file.subarray(codeAt)]));
    return at('nodeplane-cni');
  };
  expect(execFileSync('node', [pluginBuiltWith(process.version)], { encoding: 'utf8', input: '' })).toBe('stale');

  const program = pluginBuiltWith('v20.0.0');
  const node = createNode();
  const pod = createNamespace('pod');
  expect(await node.add(pod, { program })).toMatchObject({ cniVersion: '1.1.0' });
  await node.del(pod, { program });
  expect(node.reservations()).toEqual([]);
});

it('answers with an error object when its code does not lie beside it', () => {
  const program = join(createFolder('plugin').path, 'nodeplane-cni');
  copyFileSync(builtProgram('nodeplane-cni'), program);
  const { status, stdout } = spawnSync('node', [program], { encoding: 'utf8', input: '' });
  expect(status).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    code: 5,
    msg: expect.stringContaining(`"${program}.code" must lie beside`),
  });
});
