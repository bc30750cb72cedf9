import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Agent, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { createStatusNode, type StatusNode } from './node.ts';

// An agent that listens elsewhere than by default: what is said to look at is a command that finds it.

const ADDRESS = '127.0.0.1:11249';
let lab: StatusNode;
let agent: Agent;

beforeAll(async () => {
  lab = await createStatusNode();
  const { node, manifests } = lab;
  agent = await node.startAgent({
    manifests,
    flags: ['--proxy-mode', 'nftables', '--metrics-bind-address', ADDRESS],
    until: 'live',
  });
}, patient(300_000));
afterAll(async () => {
  await agent?.stop();
  removeAll();
});

it(
  'the command beside a problem answers as it is printed',
  async () => {
    const run = (line: string) => {
      const command = line.replace(/^nodeplane /, `${builtProgram('nodeplane')} `);
      const { status, stdout, stderr } = spawnSync(
        'ip',
        ['netns', 'exec', lab.node.namespace.name, 'sh', '-c', command],
        {
          encoding: 'utf8',
        },
      );
      return { status, stdout, stderr };
    };
    const remedy = () =>
      /^ {6}(nodeplane services .*)$/m.exec(run(`nodeplane status --address ${ADDRESS}`).stdout)?.[1];
    await expect.poll(remedy, { timeout: patient(30_000) }).toBeDefined();
    const answer = run(remedy()!);
    expect(answer).toMatchObject({ status: 2, stderr: '' });
    expect(answer.stdout).toContain('169.254.169.254');
  },
  patient(60_000),
);
