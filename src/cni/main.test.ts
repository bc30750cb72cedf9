import { describe, expect, it } from 'vitest';
import { main } from './main.ts';

const ENV = {
  CNI_COMMAND: 'ADD',
  CNI_CONTAINERID: 'pod-a',
  CNI_NETNS: '/run/netns/nodeplane-not-there',
  CNI_IFNAME: 'eth0',
  CNI_PATH: '/opt/cni/bin',
};
const CONFIG = { cniVersion: '1.0.0', name: 'net', type: 'nodeplane-cni' };

async function run(
  env: Record<string, string>,
  stdin: string | (() => string) = JSON.stringify(CONFIG),
  argv: string[] = [],
) {
  let stdout = '';
  let stderr = '';
  const status = await main({
    env,
    argv,
    program: '/opt/cni/bin/nodeplane-cni',
    stdin: typeof stdin === 'string' ? () => stdin : stdin,
    stdout: (text) => {
      stdout += text;
    },
    stderr: (text) => {
      stderr += text;
    },
    version: '9.9.9',
  });
  return { status, stdout, stderr, json: stdout === '' ? undefined : JSON.parse(stdout) };
}

const neverRead = () => {
  throw new Error('stdin was read');
};

it('says what it is when run by hand, and succeeds', async () => {
  for (const [env, argv] of [
    [{}, []],
    [ENV, ['--version']],
  ] as const) {
    const { status, stdout, stderr } = await run(env, neverRead, [...argv]);
    expect(status).toBe(0);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^nodeplane-cni 9\.9\.9: /);
    expect(stderr).toContain('CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0');
  }
});

it('answers VERSION without environment and without reading stdin', async () => {
  const { status, json } = await run({ CNI_COMMAND: 'VERSION', CNI_IFNAME: 'bad/name' }, neverRead);
  expect(status).toBe(0);
  expect(json).toEqual({
    cniVersion: '1.1.0',
    supportedVersions: ['0.1.0', '0.2.0', '0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'],
  });
});

describe('an error', () => {
  const without = (...names: string[]) =>
    Object.fromEntries(Object.entries(ENV).filter(([name]) => !names.includes(name)));
  const config = (change: object) => JSON.stringify({ ...CONFIG, ...change });

  it.each<[string, Record<string, string>, string, number, RegExp]>([
    [
      'an unknown command',
      { ...ENV, CNI_COMMAND: 'ERASE' },
      '',
      4,
      /^CNI_COMMAND "ERASE" is not served by this plugin/,
    ],
    ['a command like an object property', { ...ENV, CNI_COMMAND: 'toString' }, '', 4, /^CNI_COMMAND "toString"/],
    [
      'missing variables',
      without('CNI_CONTAINERID', 'CNI_NETNS'),
      config({}),
      4,
      /^required env variables \[CNI_CONTAINERID,CNI_NETNS\] missing$/,
    ],
    ['all variables missing for DEL', { CNI_COMMAND: 'DEL' }, config({}), 4, /\[CNI_CONTAINERID,CNI_IFNAME,CNI_PATH\]/],
    [
      'a path as container ID',
      { ...ENV, CNI_CONTAINERID: '../x' },
      config({}),
      4,
      /^Cannot use CNI_CONTAINERID "\.\.\/x"/,
    ],
    ['a path as interface', { ...ENV, CNI_IFNAME: 'a/b' }, config({}), 4, /^Cannot use CNI_IFNAME "a\/b"/],
    ['empty stdin', ENV, '', 6, /standard input is empty$/],
    ['bad JSON', ENV, '{"cniVersion":', 6, /^Cannot read the network configuration as JSON/],
    ['trailing garbage', ENV, `${config({})}}`, 6, /^Cannot read the network configuration as JSON/],
    ['JSON that is no object', ENV, '[]', 6, /it is no JSON object$/],
    ['an unsupported version', ENV, config({ cniVersion: '1.2.0' }), 1, /^incompatible CNI versions$/],
    ['no name', ENV, config({ name: '' }), 7, /^missing network name/],
    ['a path as name', ENV, config({ name: '..' }), 7, /^Cannot use name "\.\."/],
    [
      'a version without that verb, given by none',
      { ...ENV, CNI_COMMAND: 'CHECK' },
      config({ cniVersion: undefined }),
      1,
      /^Version 0\.1\.0 of CNI has no command CHECK$/,
    ],
    ['a bad range', ENV, config({ ipam: { type: 'host-local', subnet: '10.0.0.1/8' } }), 7, /host bits/],
    [
      'CHECK in a version without it',
      { ...ENV, CNI_COMMAND: 'CHECK' },
      config({ cniVersion: '0.3.1' }),
      1,
      /no command CHECK$/,
    ],
    ['GC in a version without it', { ...ENV, CNI_COMMAND: 'GC' }, config({}), 1, /no command GC$/],
    ['an IPAM plugin given by path', ENV, config({ ipam: { type: '../x' } }), 7, /^Cannot use ipam\.type "\.\.\/x"/],
    ['CNI_ARGS that cannot be read', { ...ENV, CNI_ARGS: 'IP' }, config({}), 4, /^Cannot use CNI_ARGS "IP"/],
    ['CHECK without result', { ...ENV, CNI_COMMAND: 'CHECK' }, config({}), 7, /key "prevResult" is missing$/],
    [
      'GC without saying what is valid',
      { CNI_COMMAND: 'GC', CNI_PATH: 'x' },
      config({ cniVersion: '1.1.0' }),
      7,
      /key "cni\.dev\/valid-attachments" is missing$/,
    ],
    [
      'GC of paths',
      { CNI_COMMAND: 'GC', CNI_PATH: 'x' },
      config({ cniVersion: '1.1.0', 'cni.dev/valid-attachments': [{ containerID: '../a', ifname: 'eth0' }] }),
      7,
      /"containerID" is no container ID$/,
    ],
  ])('is printed for %s', async (_, env, stdin, code, message) => {
    const { status, json, stderr } = await run(env, stdin);
    expect(status).toBe(1);
    expect(json).toMatchObject({ code, msg: expect.stringMatching(message), cniVersion: expect.any(String) });
    expect(stderr).toBe('');
  });

  it('names the supported versions', async () => {
    expect((await run(ENV, config({ cniVersion: '0.5.0' }))).json.details).toBe(
      'config is "0.5.0", plugin supports ["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]',
    );
  });

  it('carries the version of the configuration once that is known', async () => {
    expect((await run(ENV, config({ cniVersion: '0.4.0', ipam: 5 }))).json.cniVersion).toBe('0.4.0');
  });

  it('is one of input and output when stdin cannot be read', async () => {
    expect((await run(ENV, neverRead)).json).toMatchObject({ code: 5, details: 'stdin was read' });
  });
});
