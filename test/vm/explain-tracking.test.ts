import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readSysctl, writeSysctl } from '../../src/sys/index.ts';
import { ExplainWorld, on, served, TARGET } from '../lab/explain/explain-world.ts';
import { answers, Faults } from '../lab/explain/faults.ts';
import { type Host, removeAll } from '../lab/lab.ts';
import { patient } from '../lab/patience.ts';

// What of connection tracking only the first namespace may set, and flow tables, which not every kernel has.

const VIP = { TCP: '10.96.0.10', UDP: '10.96.0.11' } as const;
const NODE_PORT = { TCP: 30_080, UDP: 30_081 } as const;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;

beforeAll(() => {
  const objects = (['TCP', 'UDP'] as const).flatMap((protocol) =>
    served(`shop/${protocol.toLowerCase()}`, VIP[protocol], [on(node, web.ip())], {
      type: 'NodePort',
      ports: [{ port: 80, nodePort: NODE_PORT[protocol], protocol }],
    }),
  );
  return world.begin(objects);
}, 600_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

it('a small table full of flows that nobody answered: hardly any is where the kernel looks for room', async () => {
  const [most, tries] = [50, 40];
  const name = 'net/netfilter/nf_conntrack_max';
  const before = readSysctl(name);
  writeSysctl(name, most);
  faults.undo(() => void writeSysctl(name, before));
  const file = join(world.lab.folder, 'flows');
  const flow = (index: number) =>
    `-I -p tcp --state SYN_SENT -t 6000 -s 198.18.0.${index} --sport 4000 -d 198.19.0.1 --dport 80\n`;
  writeFileSync(file, Array.from({ length: most }, (_, index) => flow(index)).join(''));
  faults.undo(() => void world.run('conntrack', '-F'));
  // The kernel takes them away by itself, now and then (gc_worker).
  await vi.waitFor(
    async () => {
      world.run('conntrack', '-F');
      world.run('conntrack', '-R', file);
      const [answer] = await world.askHere([{ destination: VIP.TCP, source: client.ip() }]);
      expect(answer).toMatchObject({ code: 'conntrack-full', verdict: expect.stringMatching(/^(partly|fails)$/) });
      const outcomes = await client.connectMany({ ip: VIP.TCP, port: 80 }, tries, { timeoutMs: patient(900) });
      const good = outcomes.filter(({ kind }) => kind === 'answered').length;
      expect(good).toBeLessThan(tries);
    },
    { timeout: patient(60_000) },
  );
}, 600_000);

describe('flow tables, past which packets of a flow meet no rules', () => {
  const offload = (...rules: string[]) => {
    const flowtable = ['hook ingress priority 0', 'devices = { cni0, eth0 }'];
    const put = 'ct state established flow add @fast';
    const chain = ['type filter hook forward priority 10; policy accept', put, ...rules];
    const lines = ['table inet theirs {', 'flowtable fast {', ...flowtable, '}', 'chain forward {', ...chain, '}', '}'];
    world.run('nft', lines.join('\n'));
    faults.undo(() => world.run('nft', 'delete table inet theirs'));
    world.run('conntrack', '-F');
  };
  const expectTrue = async (
    from: Host,
    [ip, port]: readonly [string, number],
    protocol: 'TCP' | 'UDP',
    expected: readonly [string, boolean],
  ) => {
    for (const when of ['before', 'after']) {
      const [answer] = await world.askHere([{ destination: `${ip}:${port}`, source: from.ip(), protocol }]);
      const answered = await answers(from, ip, port, protocol);
      expect([answer!.verdict, answered], `${from.name}, ${when}: ${answer!.cause}`).toEqual(expected);
    }
  };

  it.each<['TCP' | 'UDP', string, string, string, boolean]>([
    ['TCP', 'nothing is dropped', 'counter', 'works', true],
    ['UDP', 'nothing is dropped', 'counter', 'works', true],
    ['TCP', 'answers are dropped before any flow is there', `tcp sport ${TARGET} drop`, 'fails', false],
    ['UDP', 'first packets are dropped', 'ct state new drop', 'fails', false],
  ])('%s: %s', async (protocol, _, rule, verdict, answered) => {
    offload(rule);
    await expectTrue(client, [VIP[protocol], 80], protocol, [verdict, answered]);
    world.run('conntrack', '-F');
    await expectTrue(outside, [node.ip(), NODE_PORT[protocol]], protocol, [verdict, answered]);
  });

  it('data is dropped behind what puts flows there, and does not come that way', async () => {
    offload(`tcp dport ${TARGET} tcp flags & psh == psh drop`);
    await expectTrue(outside, [node.ip(), NODE_PORT.TCP], 'TCP', ['unknown', true]);
  });
});
