import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Agent, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { createStatusNode, type StatusNode } from './node.ts';

const LONG_MS = patient(300_000);

let lab: StatusNode;
let agent: Agent;

beforeAll(async () => {
  lab = await createStatusNode();
  agent = await lab.start('--proxy-mode', 'iptables', '--iptables-variant', 'nft');
}, LONG_MS);
afterAll(async () => {
  await agent.stop();
  removeAll();
});

/** Root whom these capabilities were taken from. */
function run(without: string, ...args: string[]) {
  const setpriv = ['setpriv', '--bounding-set', without, '--inh-caps', without, builtProgram('nodeplane')];
  const command = ['netns', 'exec', lab.node.namespace.name, ...setpriv, ...args];
  const { status, stdout, stderr } = spawnSync('ip', command, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

it.each<[string, string[], number]>([
  ['trace packets', ['trace', 'any', '10.96.0.10:80', '--live', '1s'], 70],
  ['read packet rules', ['migration'], 1],
])(
  'what cannot %s says so, and what to do',
  (purpose, args, status) => {
    const ended = run('-net_admin', ...args);
    expect(ended.stderr).toMatch(
      new RegExp(`Cannot ${purpose} without CAP_NET_ADMIN: run as root or grant the capability \\(ERR_CONFIG\\)\\n$`),
    );
    expect(ended).toMatchObject({ status, stdout: '' });
  },
  LONG_MS,
);

it(
  'a probe needs more',
  () => {
    const source = lab.pods[0]!.ip();
    const ended = run('-sys_admin', 'trace', source, '10.96.0.10:80', '--probe', '--live', '1s');
    expect(ended.stderr).toContain(
      'Cannot connect from a pod without CAP_SYS_ADMIN: run as root or grant the capability',
    );
    expect(ended.status).toBe(70);
    // Of a wrong question that is said.
    expect(run('-sys_admin', 'trace', 'any', '10.96.0.10:80', '--probe').status).toBe(64);
  },
  LONG_MS,
);

it(
  'of a Service what can be told is told',
  () => {
    const { status, stdout } = run('-net_admin', 'services', 'shop/cart');
    expect(status).toBe(0);
    expect(stdout).toContain('Who is remembered is not known: Cannot read who is remembered without CAP_NET_ADMIN');
    expect(stdout).toContain('Connections are not known: Cannot read connections without CAP_NET_ADMIN: run as root');
  },
  LONG_MS,
);
