import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { runCni } from '../../../src/cni/index.ts';
import { enterNetns } from '../../../src/sys/index.ts';
import { createFolder, createNamespace, removeAll } from '../namespace.ts';
import { linksOf } from './fixture.ts';

afterAll(removeAll);

/** How long to go on; by default long enough for a few hundred requests. */
const SECONDS = Number(process.env.NODEPLANE_FUZZ_SECONDS ?? 5);

/** Values that break parsers: other types, paths, control characters, numbers at the edges, deep nests. */
const hostile = fc.oneof(
  fc.constantFrom(
    '',
    '.',
    '..',
    '../../etc/passwd',
    '/',
    'a/b',
    'a\0b',
    'a\nb',
    '%d',
    'é',
    '__proto__',
    'constructor',
    '0.0.0.0',
    '::',
    '10.0.0.0/33',
    '999.1.1.1',
    'x'.repeat(5000),
  ),
  fc.constantFrom(null, true, false, 0, -1, 1.5, 65536, 2 ** 53, -(2 ** 31), Number.MAX_VALUE),
  fc.jsonValue({ maxDepth: 4 }),
  fc.string({ unit: 'binary', maxLength: 40 }),
);

const hostileText = hostile.filter((value) => typeof value === 'string').map(String);

/** Replaces one value, wherever it lies, by another one; or takes it away. */
function mutate(value: unknown, path: readonly number[], by: unknown): unknown {
  const [at, ...rest] = path;
  if (at === undefined || typeof value !== 'object' || value === null) return by;
  const entries = Object.entries(value);
  const entry = entries[at % Math.max(1, entries.length)];
  if (!entry) return by;
  const [key, inner] = entry;
  const changed = mutate(inner, rest, by);
  if (Array.isArray(value)) return value.map((item, i) => (String(i) === key ? changed : item));
  return { ...value, [key]: changed };
}

it('answers hostile requests with errors of the specification, and keeps nothing of them', {
  timeout: (SECONDS + 60) * 1000,
}, async () => {
  const node = createNamespace('fuzz');
  const pod = createNamespace('pod');
  const dataDir = createFolder('fuzz').path;
  // For good: this process serves the requests itself, and must not do so in the machine's own namespace.
  enterNetns(node.path);
  const name = `fuzz-${process.pid}`;
  const base = {
    cniVersion: '1.1.0',
    name,
    type: 'nodeplane-cni',
    mode: 'bridge',
    bridge: 'cni0',
    mtu: 1400,
    vlanTrunk: [{ id: 5 }],
    ipam: {
      type: 'host-local',
      dataDir,
      ranges: [[{ subnet: '10.1.0.0/24', rangeStart: '10.1.0.5', gateway: '10.1.0.1' }], [{ subnet: 'fd00::/64' }]],
      routes: [{ dst: '10.0.0.0/8', gw: '10.1.0.1' }],
      exclude: ['10.1.0.6'],
    },
    dns: { nameservers: ['10.0.0.10'], search: ['a'] },
    args: { cni: { ips: ['10.1.0.9'], mac: '0a:00:00:00:00:01' } },
    runtimeConfig: {
      portMappings: [{ hostPort: 80, containerPort: 80, protocol: 'tcp', hostIP: '127.0.0.1' }],
      bandwidth: { ingressRate: 1, ingressBurst: 1 },
      ips: ['10.1.0.8'],
    },
    prevResult: {
      cniVersion: '1.0.0',
      interfaces: [{ name: 'eth0', mac: '0a:00:00:00:00:01', sandbox: '/x' }],
      ips: [{ address: '10.1.0.9/24', gateway: '10.1.0.1', interface: 0 }],
      routes: [{ dst: '0.0.0.0/0', gw: '10.1.0.1' }],
    },
    'cni.dev/valid-attachments': [{ containerID: 'c', ifname: 'eth0' }],
  };
  const commands = fc.constantFrom('ADD', 'DEL', 'CHECK', 'GC', 'STATUS', 'VERSION', 'add', '', 'toString');
  const mutation = fc.record({ path: fc.array(fc.nat(20), { maxLength: 4 }), by: hostile });
  const variables = fc.record(
    {
      CNI_CONTAINERID: fc.oneof({ weight: 4, arbitrary: fc.constant('c') }, fc.string({ maxLength: 20 }), hostileText),
      CNI_IFNAME: fc.oneof({ weight: 4, arbitrary: fc.constant('eth0') }, fc.string({ maxLength: 20 }), hostileText),
      CNI_NETNS: fc.oneof(
        { weight: 4, arbitrary: fc.constant(pod.path) },
        fc.constantFrom('/proc/self/ns/net', '/proc/self/ns/uts', '/dev/null', '/etc', node.path),
        hostileText,
      ),
      CNI_ARGS: fc.oneof({ weight: 4, arbitrary: fc.constant('IgnoreUnknown=1') }, fc.string(), hostileText),
      CNI_PATH: fc.constantFrom('/nowhere', '', '::'),
    },
    { requiredKeys: [] },
  );
  const request = fc.record({
    command: commands,
    variables,
    mutations: fc.array(mutation, { maxLength: 3 }),
    drop: fc.constantFrom(undefined, 'prevResult', 'runtimeConfig', 'args', 'vlanTrunk', 'ipam', 'cniVersion'),
    text: fc.option(fc.string(), { freq: 15, nil: undefined }),
  });

  // At the end of the time the request under way is not waited for, and GC leaves alone what is under way.
  let last: Promise<unknown> = Promise.resolve();
  const property = fc.asyncProperty(request, async ({ command, variables: env, mutations, drop, text }) => {
    let config: Record<string, unknown> = { ...base };
    // What would be refused right away hides what lies behind it, so most requests go without.
    if (drop !== 'prevResult' && command === 'ADD') delete config.prevResult;
    if (drop !== 'vlanTrunk') delete config.vlanTrunk;
    if (drop) delete config[drop];
    for (const { path, by } of mutations) config = mutate(config, path, by) as Record<string, unknown>;
    // Nothing is to be written outside the folder of this test.
    if (isObject(config) && isObject(config.ipam)) config = { ...config, ipam: { ...config.ipam, dataDir } };
    const stdin = text ?? JSON.stringify(config) ?? '';
    const serving = runCni({ environment: { CNI_COMMAND: command, ...env }, stdin });
    last = serving;
    const reply = await serving;
    if (reply.exitCode === 0) {
      if (reply.stdout !== '') JSON.parse(reply.stdout);
      return;
    }
    const error = JSON.parse(reply.stdout);
    expect(Object.keys(error).filter((key) => !['cniVersion', 'code', 'msg', 'details'].includes(key))).toEqual([]);
    expect(error.msg).toMatch(/\S/);
    // An internal error is a mistake of ours, whatever the request was.
    expect(error.code, `${error.msg} ${error.details}`).not.toBe(999);
    expect(error.code).toBeGreaterThan(0);
  });
  await fc.assert(property, {
    numRuns: 1_000_000_000,
    interruptAfterTimeLimit: SECONDS * 1000,
    markInterruptAsFailure: false,
  });
  await last;

  const gc = { ...base, prevResult: undefined, 'cni.dev/valid-attachments': [] };
  const environment = { CNI_COMMAND: 'GC', CNI_PATH: '/nowhere' };
  expect(await runCni({ environment, stdin: JSON.stringify(gc) })).toMatchObject({ exitCode: 0 });
  const left = [node, pod].flatMap(linksOf).filter(({ ifname }) => /^(veth|eth)/.test(ifname));
  expect(left.map(({ ifname, ifalias }) => `${ifname} ${ifalias}`)).toEqual([]);
});

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
