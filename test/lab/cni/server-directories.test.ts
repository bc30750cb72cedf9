import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { createServedNode, type ServedNode } from './served-node.ts';

afterEach(removeAll);

const modeOf = (path: string) => statSync(path).mode & 0o7777;

function makeDirectory(served: ServedNode, mode: number, owner = 0): string {
  const directory = join(served.folder, 'given');
  mkdirSync(directory);
  chmodSync(directory, mode);
  chownSync(directory, owner, owner);
  return directory;
}

describe('the directories of the agent’s CNI flags', () => {
  it('are left as they are when others use them too', async () => {
    const served = createServedNode();
    const shared = makeDirectory(served, 0o755);
    const socket = join(shared, 'cni.sock');
    await served.startAgent({ flags: ['--cni-socket', socket, '--cni-spool-dir', shared] });
    expect(modeOf(shared)).toBe(0o755);
    expect(modeOf(socket)).toBe(0o600);
    expect(await served.call('STATUS', undefined, { env: { NODEPLANE_CNI_SOCKET: socket } })).toMatchObject({
      status: 0,
    });
  });

  it.each([
    ['--cni-socket', 'cni.sock', 0o1777, 0, 'has mode 1777'],
    ['--cni-socket', 'cni.sock', 0o755, 65534, 'belongs to user 65534'],
    ['--cni-spool-dir', '', 0o777, 0, 'has mode 0777'],
    ['--cni-data-dir', 'below/it', 0o777, 0, 'has mode 0777'],
  ])('are refused where others could replace what is in them: %s %s in %o of %i', (flag, name, mode, owner, reason) => {
    const served = createServedNode();
    const directory = makeDirectory(served, mode, owner);
    const args = [
      'agent',
      '--manifests',
      join(served.folder, 'manifests'),
      ...served.flags,
      flag,
      join(directory, name),
    ];
    const { status, stdout, stderr } = spawnSync(
      'ip',
      ['netns', 'exec', served.node.namespace.name, builtProgram('nodeplane'), ...args],
      { encoding: 'utf8', timeout: 30_000 },
    );
    expect(status).toBe(1);
    const said = stdout + stderr;
    for (const part of [flag, directory, reason, 'chmod go-w', 'ERR_UNSAFE_PATH']) expect(said).toContain(part);
    expect(modeOf(directory)).toBe(mode);
    expect(existsSync(join(directory, 'cni.sock'))).toBe(false);
  });
});
