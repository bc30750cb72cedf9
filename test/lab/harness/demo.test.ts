import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { withoutEndpoint } from '../../../demo/endpoint-removal.ts';
import { createFolder, removeAll } from '../namespace.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';

const nodeplane = builtProgram('nodeplane');
/** The demo takes seconds on a quiet machine. */
const LIMIT_MS = patient(300_000);
const repository = dirname(dirname(nodeplane));

afterAll(removeAll);

/** Runs `nodeplane demo`; output without a terminal has no colour codes. */
function demo(program: string, ...flags: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(program, ['demo', ...flags], { encoding: 'utf8', cwd: '/' });
  return { status, output: stdout + stderr };
}

function left(): string[] {
  const namespaces = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' }).match(/^nodeplane-demo-\S+/gm) ?? [];
  return [...namespaces, ...(existsSync('/run/nodeplane-demo') ? ['/run/nodeplane-demo'] : [])];
}

it(
  'shows everything true from any folder and leaves nothing behind',
  () => {
    const { status, output } = demo(nodeplane);
    expect(output).toContain('That was all true.');
    expect(status).toBe(0);
    expect(output).toContain('10.244.2.0/24 ');
    expect(output).toMatch(/answered, by this route of node-1; web-1 saw the client’s own address, 10\.244\.1\.11/);
    expect(output.match(/all 200 answered/g)).toHaveLength(2);
    expect(output).toMatch(/was begun \d+ ms after the file was saved/);
    expect(output).toMatch(/refused after [\d.]+ ms/);
    expect(output).toMatch(/Services here +1 of 2 /);
    expect(output).toContain('http://127.0.0.1:10249/status');
    expect(output).not.toContain('\x1b');
    expect(Math.max(...output.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(left()).toEqual([]);
  },
  LIMIT_MS,
);

it(
  'keeps the demo up on request, with the commands it prints working, until it is removed',
  () => {
    const kept = demo(nodeplane, '--keep');
    try {
      expect(kept.status).toBe(0);
      const command = (pattern: RegExp) => pattern.exec(kept.output)?.[0] ?? 'false';
      const said = (text: string) => execFileSync('sh', ['-c', text], { encoding: 'utf8', stdio: 'pipe' });
      expect(said(command(/ip netns exec \S+-client \S+ .*10\.96\.0\.10.*/))).toMatch(/web-[123]/);
      expect(said(command(/ip netns exec \S+-outside .*30080.*/))).toMatch(/web-[123]/);
      expect(() => said(command(/ip netns exec .*10\.96\.0\.20.*/))).toThrow(/refused|connect/i);
      expect(said(command(/ip netns exec .*services default\/web/))).toContain('10.244.2.11:8080');
      expect(said(command(/ip netns exec .*ip route.*/))).toContain('10.244.2.0/24');
      expect(said(command(/ip netns exec .*nft list.*/))).toContain('default/web:http');
      expect(demo(nodeplane)).toMatchObject({ status: 1, output: expect.stringContaining('A demo is up already') });
    } finally {
      expect(demo(nodeplane, '--remove').status).toBe(0);
    }
    expect(left()).toEqual([]);
    expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toMatch(
      /--serve-pods|nodeplane-demo\/manifests/,
    );
  },
  LIMIT_MS,
);

describe('when something shown is not true', () => {
  // The built programs with manifests of their own beside them, as in the repository.
  const copy = createFolder('demo').path;
  cpSync(join(repository, 'dist'), join(copy, 'dist'), { recursive: true });
  cpSync(join(repository, 'demo'), join(copy, 'demo'), { recursive: true });

  it.each([
    ['web-endpoints.yaml', '10.244.2.12', '10.244.2.11', 'web-2 gets at least 30 of 200 requests'],
    ['cluster.yaml', '10.244.2.0/24', '10.244.3.0/24', 'node-1 has a route of nodeplane’s to the pods of node-2'],
    ['empty.yaml', '10.96.0.20', '10.96.0.21', 'A Service without endpoints refuses connections at once'],
  ])(
    'in %s, says which claim and ends with status 1',
    (file, from, to, claim) => {
      const path = join(copy, 'demo/manifests', file);
      const good = readFileSync(path, 'utf8');
      writeFileSync(path, good.replaceAll(from, to));
      const { status, output } = demo(join(copy, 'dist/nodeplane'));
      writeFileSync(path, good);
      expect(output).toContain(`Not true: ${claim}`);
      expect(status).toBe(1);
      expect(left()).toEqual([]);
    },
    LIMIT_MS,
  );
});

it('takes one endpoint out of the slice and leaves the rest as it is', () => {
  const slice = readFileSync(join(repository, 'demo/manifests/web-endpoints.yaml'), 'utf8');
  const { text, removed } = withoutEndpoint(slice, '10.244.2.12');
  expect(removed).toHaveLength(3);
  expect(text).toBe(slice.replace(`${removed.join('\n')}\n`, ''));
  expect(text.match(/addresses: .*/g)).toEqual([
    'addresses: [10.244.2.11] # web-1',
    'addresses: [10.244.2.13] # web-3',
  ]);
});
