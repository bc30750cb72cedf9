import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// What others serve beside Services or in front of them: host ports, a cache of names on the node, redirects to a process of the node.

const [VIP, DNS] = ['10.96.0.10', '10.96.0.11'];
const [HOST_PORT, PROCESS, TAKEN] = [8088, 9000, 30099];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;

beforeAll(async () => {
  await node.serve({ port: PROCESS });
  await world.begin([
    ...served('shop/taken', '10.96.0.12', [on(node, web.ip())], { ports: [{ port: 80, nodePort: TAKEN }] }),
    ...served('shop/web', VIP, [on(node, web.ip())]),
    ...served('shop/dns', DNS, [on(node, web.ip())], { ports: [{ port: 53, protocol: 'UDP' }] }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

async function ask(destination: string, source: string, protocol: 'TCP' | 'UDP' = 'TCP') {
  const [answer] = await world.askHere([{ destination, source, protocol }]);
  return answer!;
}

const to = `${web.ip()}:${TARGET}`;
const HOST_PORTS: Readonly<Record<string, () => void>> = {
  'iptables, as the portmap plugin does': () => {
    const dnat = `-p tcp -m tcp --dport ${HOST_PORT} -m addrtype --dst-type LOCAL -j DNAT --to-destination ${to}`;
    for (const chain of ['PREROUTING', 'OUTPUT'])
      faults.run('iptables', `-t nat -A ${chain} ${dnat}`, `-t nat -D ${chain} ${dnat}`);
  },
  nftables: () => {
    const rule = `fib daddr type local tcp dport ${HOST_PORT} dnat ip to ${to};`;
    const chains = ['prerouting', 'output'].map(
      (hook) => `chain ${hook} { type nat hook ${hook} priority -100; ${rule} }`,
    );
    faults.nft(`table inet ports {\n${chains.join('\n')} }`, 'inet ports');
  },
};

it.each(Object.entries(HOST_PORTS))('a host port by %s is no NodePort, and answers', async (_, begin) => {
  for (const host of [outside, client]) {
    expect(await ask(`node:${HOST_PORT}`, host.ip())).toMatchObject({ verdict: 'fails', code: 'no-such-port' });
    expect(await answers(host, node.ip(), HOST_PORT)).toBe(false);
  }
  begin();
  world.run('conntrack', '-F');
  for (const host of [outside, client, node]) {
    const answer = await ask(`node:${HOST_PORT}`, host === node ? 'node' : host.ip());
    expect(answer.verdict, answer.cause).toBe('works');
    expect(await answers(host, node.ip(), HOST_PORT)).toBe(true);
  }
});

it('a number that nobody has is no such port, whatever drops packets to it', async () => {
  faults.nft('table ip ufw { chain in { type filter hook input priority 0; tcp dport 8089 drop; } }', 'ip ufw');
  const answer = await ask('node:8089', outside.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'fails', code: 'no-such-port' });
});

it('what a process of the node answers in place of endpoints is UNKNOWN: a cache of names that is not tracked', async () => {
  faults.ip(`address add ${DNS}/32 dev lo`, `address del ${DNS}/32 dev lo`);
  await node.serve({ port: 53, protocol: 'UDP', ip: DNS });
  const untracked = (hook: string, ...ends: string[]) =>
    `chain ${hook} { type filter hook ${hook} priority -300; ${ends.map((end) => `ip ${end} notrack`).join('; ')}; }`;
  const chains = [
    untracked('prerouting', `daddr ${DNS} udp dport 53`),
    untracked('output', `saddr ${DNS} udp sport 53`, `daddr ${DNS} udp dport 53`),
  ];
  faults.nft(`table inet cache {\n${chains.join('\n')} }`, 'inet cache');
  for (const host of [client, node]) {
    const answer = await ask(`${DNS}:53`, host === node ? 'node' : host.ip(), 'UDP');
    expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('no endpoint') });
    expect(await answers(host, DNS, 53, 'UDP')).toBe(true);
  }
  await node.stopServing({ port: 53, protocol: 'UDP' });
  expect(await ask(`${DNS}:53`, client.ip(), 'UDP')).toMatchObject({
    verdict: 'fails',
    code: 'foreign-drop',
    cause: expect.stringContaining('out of connection tracking'),
  });
  expect(await answers(client, DNS, 53, 'UDP')).toBe(false);
});

it('the same by a redirect', async () => {
  const redirect = 'type nat hook prerouting priority -110; tcp dport 80 redirect to';
  faults.nft(`table inet proxy { chain in { ${redirect} :${PROCESS}; } }`, 'inet proxy');
  const answer = await ask(`${VIP}:80`, client.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('no endpoint') });
  expect(await answers(client, VIP)).toBe(true);
  faults.mend();
  faults.nft(`table inet proxy { chain in { ${redirect} :${PROCESS + 1}; } }`, 'inet proxy');
  // To write our own rules again would not mend it.
  const nobody = await ask(`${VIP}:80`, client.ip());
  expect(nobody).toMatchObject({ verdict: 'fails', code: 'foreign-drop', remedy: ['nft -a list chain inet proxy in'] });
  expect(await answers(client, VIP)).toBe(false);
});

it('a NodePort whose number Docker publishes: the rule that leads elsewhere is named, and nothing false is said of its process', async () => {
  const docker = world.lab.addClient('container');
  await docker.serve({ port: 80 });
  await node.serve({ port: TAKEN });
  const dnat = `-p tcp -m tcp --dport ${TAKEN} -j DNAT --to-destination ${docker.ip()}:80`;
  faults.run('iptables', `-t nat -I PREROUTING ${dnat}`, `-t nat -D PREROUTING ${dnat}`);
  const answer = await ask(`node:${TAKEN}`, outside.ip());
  expect(answer).toMatchObject({
    verdict: 'unknown',
    cause: expect.stringMatching(
      /table ip nat, chain PREROUTING, rule \d+ \(hook prerouting\), which is not nodeplane’s, leads to \S+:80, which the plan does not have/,
    ),
    warnings: [],
  });
});
