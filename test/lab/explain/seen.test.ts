import { afterAll, beforeAll, expect, it } from 'vitest';
import { deleteFlows, listFlows } from '../../../src/netlink/conntrack/index.ts';
import { Netlink } from '../../../src/netlink/index.ts';
import { NETLINK_NETFILTER } from '../../../src/netlink/uapi/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// What the agent saw before it was asked: who changed rules, and what nobody answered.

const SERVICE = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;

beforeAll(async () => {
  await world.begin(served('shop/web', SERVICE, [on(node, web.ip())]));
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const fence = (table: string, verdict: string) =>
  faults.nft(
    `table inet ${table} { chain gate { type filter hook forward priority 10; tcp dport 8080 ${verdict}; } }`,
    `inet ${table}`,
  );

it('names who wrote the rule that drops, and nobody else', async () => {
  expect(await answers(client, SERVICE)).toBe(true);
  fence('hedge', 'accept');
  fence('fence', 'drop');
  expect(await answers(client, SERVICE)).toBe(false);
  const answer = await faults.expectCode('svc/shop/web', client.ip(), 'foreign-drop');
  const text = expect.stringMatching(/^nft \(pid [1-9]\d*\) added (table|chain) inet fence.*, \d s ago$/);
  expect(answer.seen).toEqual([{ kind: 'rules', text, secondsAgo: expect.closeTo(3, -1) }]);
  const { stdout } = await world.command('explain', 'svc/shop/web', '--from', client.ip());
  expect(stdout).toMatch(/\n {2}seen +nft \(pid \d+\) added /);
});

it('tells that somebody took rules of this agent away, though it has put them back', async () => {
  world.run('nft', 'flush', 'table', 'ip', 'nodeplane');
  await expect.poll(() => answers(client, SERVICE)).toBe(true);
  await world.settle();
  const answer = await world.ask('svc/shop/web', client.ip());
  expect(answer.verdict, answer.cause).toBe('works');
  const text = expect.stringMatching(/^nft \(pid \d+\) removed .* ip nodeplane .*, \d+ s ago$/);
  expect(answer.seen).toContainEqual({ kind: 'rules', text, secondsAgo: expect.any(Number) });
});

it('tells that connections like this one were given up, when all is well again', async () => {
  faults.nft('table ip mute { chain in { type filter hook input priority 0; tcp dport 8080 drop; } }', 'ip mute', web);
  expect(await answers(client, SERVICE)).toBe(false);
  faults.mend();
  expect(await answers(client, SERVICE)).toBe(true);
  const asked = async (from: string, to = 'svc/shop/web') =>
    (await world.ask(to, from)).seen.filter(({ kind }) => kind === 'unanswered');
  // The kernel gives it up after two minutes, or when somebody says so.
  expect(await asked(client.ip())).toEqual([]);
  inNetns(node.namespace.path, () => {
    const netlink = Netlink.open(NETLINK_NETFILTER);
    deleteFlows(netlink, listFlows(netlink, { family: 'IPv4', protocol: 6 }));
    netlink.close();
  });
  const text = expect.stringMatching(
    new RegExp(`^a connection like this was given up without an answer, \\d s ago: 1 to ${web.ip()}:8080$`),
  );
  const unanswered = { kind: 'unanswered', text, secondsAgo: expect.closeTo(3, -1) };
  expect(await asked(client.ip())).toEqual([unanswered]);
  expect(await asked('node')).toEqual([]);
  expect(await asked(client.ip(), `${web.ip()}:8080`)).toEqual([unanswered]);
});
