import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { Faults } from './faults.ts';

// Rules that drop a client's first packet and remember it: what the client sends again, a second later, may pass (port
// knocking, greylists).

const VIP = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
const CLIENT = client.ip();

beforeAll(() => world.begin(served('shop/web', VIP, [on(node, web.ip())])), 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** What is told, and whether a connection is answered that may send its first packet twice. */
async function told(): Promise<{ readonly verdict: string; readonly answered: boolean; readonly cause: string }> {
  const [{ verdict, cause } = { verdict: '', cause: '' }] = await world.askHere([
    { destination: `${VIP}:80`, source: CLIENT },
  ]);
  const { kind } = await client.connect({ ip: VIP, port: 80 }, { timeoutMs: 3000 });
  return { verdict, answered: kind === 'answered', cause };
}

const UNKNOWN = { verdict: 'unknown', answered: true, cause: expect.stringContaining('what is sent again may pass') };
const FAILS = { verdict: 'fails', answered: false };

const SYN = `tcp dport ${TARGET}`;
const TABLES: Readonly<Record<string, readonly [rules: readonly string[], wanted: object]>> = {
  'lets those pass that it remembers': [['ip saddr @seen accept', `${SYN} add @seen { ip saddr } drop`], UNKNOWN],
  'remembers them by a rule of its own': [
    ['ip saddr @seen accept', `${SYN} add @seen { ip saddr }`, `${SYN} drop`],
    UNKNOWN,
  ],
  'drops those that it does not forget': [['ip saddr != @known accept', 'delete @known { ip saddr } drop'], UNKNOWN],
  'remembers them for nobody': [[`${SYN} add @seen { ip saddr } drop`], FAILS],
  'drops those that it remembers': [['ip saddr @seen drop', `${SYN} add @seen { ip saddr } drop`], FAILS],
  'lets others pass that it remembers': [['ip daddr @seen accept', `${SYN} add @seen { ip saddr } drop`], FAILS],
  'refuses those that it remembers': [['ip saddr @seen accept', `${SYN} add @seen { ip saddr } reject`], FAILS],
};

it.each(Object.entries(TABLES))('a table of nf_tables %s', async (_, [rules, wanted]) => {
  const sets = ['seen', 'known'].map((name) => {
    const elements = name === 'known' ? `elements = { ${CLIENT} }\n` : '';
    return `set ${name} {\ntype ipv4_addr\nflags dynamic\n${elements}}`;
  });
  const chain = ['type filter hook forward priority 0', 'ct state established accept', ...rules].join('\n');
  world.run('nft', `table inet foreign {\n${sets.join('\n')}\nchain forward {\n${chain}\n}\n}`);
  faults.undo(() => world.run('nft', 'delete table inet foreign'));
  expect(await told()).toMatchObject(wanted);
});

const [PASS, KNOWN_SET] = ['-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT', '-m set --match-set k src'];
const CHAINS: Readonly<Record<string, readonly [rules: readonly string[], wanted: object]>> = {
  'a list of -m recent': [
    [PASS, '-A FORWARD -m recent --name k --rcheck -j ACCEPT', '-A FORWARD -m recent --name k --set -j DROP'],
    UNKNOWN,
  ],
  'a set of ipset': [
    [PASS, `-A FORWARD ${KNOWN_SET} -j ACCEPT`, '-A FORWARD -j SET --add-set k src', '-A FORWARD -j DROP'],
    UNKNOWN,
  ],
  'a list that nobody asks': [[PASS, '-A FORWARD -m recent --name k --set -j DROP'], FAILS],
};

describe.each(['iptables-legacy', 'iptables-nft'])('%s', (program) => {
  it.each(Object.entries(CHAINS))('rules that remember clients in %s', async (_, [rules, wanted]) => {
    faults.undo(() => world.run('sh', '-c', `${program} -F; ipset destroy`));
    world.run('ipset', ...'create k hash:ip'.split(' '));
    for (const rule of rules) world.run(program, ...rule.split(' '));
    expect(await told()).toMatchObject(wanted);
  });
});
