import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { createServedNode, installedConfig } from './served-node.ts';

// What `nodeplane diff` says of the limits of pods' traffic when others have taken them away, and `--repair` makes of it.

const served = createServedNode();
const BITS = 20_000_000;
const limits = { ingressRate: BITS, ingressBurst: 800_000, egressRate: 2 * BITS, egressBurst: 800_000 };
const config = (bandwidth: object) => ({ ...installedConfig(served.conflist), runtimeConfig: { bandwidth } });

const run = (program: string, ...args: string[]) => served.node.namespace.run(program, ...args);
function diff(...flags: string[]) {
  const words = [
    'netns',
    'exec',
    served.node.namespace.name,
    builtProgram('nodeplane'),
    'diff',
    '-o',
    'json',
    ...flags,
  ];
  const { status, stdout, stderr } = spawnSync('ip', words, { encoding: 'utf8' });
  expect(stderr).toBe('');
  const { parts } = JSON.parse(stdout) as {
    parts: { name: string; verdict: string; differences: { theirs: string[] }[] }[];
  };
  return { status, limits: parts.find(({ name }) => name === 'traffic limits of pods')! };
}
/** Devices and queueing disciplines of pods, but for what differs between two that are equal. */
function shaping(): string[] {
  return run('tc', 'qdisc', 'show')
    .replace(/ refcnt \d+/g, '')
    .split('\n')
    .filter((line) => /dev (?:veth|ifb)[0-9a-f]{11} /.test(line) && !line.includes('noqueue'))
    .sort();
}
const deviceOf = (kind: 'veth' | 'ifb') =>
  shaping()
    .find((line) => line.includes(`dev ${kind}`))!
    .split(' ')[4]!;

beforeAll(async () => {
  await served.startAgent();
});
afterAll(removeAll);

it('is equal without pods, and with one that has no limits', async () => {
  expect(diff()).toMatchObject({ status: 0, limits: { verdict: 'equal' } });
  const free = createNamespace('free');
  expect(await served.call('ADD', free, { config: installedConfig(served.conflist) })).toMatchObject({ status: 0 });
  expect(diff()).toMatchObject({ status: 0, limits: { verdict: 'equal' } });
});

it.each<[string, () => void, RegExp]>([
  [
    'what a pod receives is not limited any more',
    () => run('tc', 'qdisc', 'del', 'dev', deviceOf('veth'), 'root'),
    /^Device "veth.*" does not limit what the pod receives$/,
  ],
  [
    'what a pod receives has another limit',
    () =>
      run(
        'tc',
        'qdisc',
        'change',
        'dev',
        deviceOf('veth'),
        'root',
        'tbf',
        'rate',
        '5mbit',
        'burst',
        '50kb',
        'limit',
        '99kb',
      ),
    /^Device "veth.*" limits what the pod receives to 625000 bytes\/s .*, not to 2500000 bytes\/s/,
  ],
  [
    'the device that a pod sends through is gone',
    () => run('ip', 'link', 'del', deviceOf('ifb')),
    /^Device "ifb.*", which limits what the pod sends, is missing or down$/,
  ],
  [
    'what a pod sends goes by its device',
    () => run('tc', 'qdisc', 'del', 'dev', deviceOf('veth'), 'ingress'),
    /^Device "veth.*" does not pass what the pod sends through "ifb/,
  ],
])('%s', async (_, harm, sentence) => {
  const pod = createNamespace('limited');
  expect(await served.call('ADD', pod, { config: config(limits) })).toMatchObject({ status: 0 });
  expect(diff()).toMatchObject({ status: 0, limits: { verdict: 'equal' } });
  const before = shaping();
  harm();
  const found = diff();
  expect(found).toMatchObject({ status: 1, limits: { verdict: 'differs' } });
  expect(found.limits.differences.flatMap(({ theirs }) => theirs)).toContainEqual(expect.stringMatching(sentence));
  expect(diff('--repair')).toMatchObject({ status: 0, limits: { verdict: 'equal' } });
  expect(shaping()).toEqual(before);
  expect(await served.call('DEL', pod, { config: config(limits) })).toMatchObject({ status: 0 });
  expect(shaping()).toEqual([]);
  expect(diff()).toMatchObject({ status: 0, limits: { verdict: 'equal' } });
});
