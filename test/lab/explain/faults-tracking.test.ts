import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, mangleOneAnswer } from './faults.ts';
import { openPacketQueue } from './packet-queue.ts';

// What connection tracking and translation run out of, and what passes them by. Tables are filled as conntrack(8) restores them.

const world = new ExplainWorld();
const { node, web, web2, client, outside } = world;
const faults = new Faults(world);
const VIP = { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' } as const;
/** Of UDP, with two endpoints. */
const DNS = '10.96.0.11';
const NODE_PORT = 30_080;
/** Translation chooses source ports from here on. */
const [FIRST_PORT, LAST_PORT] = [1024, 65_535];

beforeAll(async () => {
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  await world.begin([
    ...served('shop/web', VIP.IPv4, [on(node, web.ip())], ports),
    ...served('shop/web6', VIP.IPv6, [on(node, web.ip('IPv6'))]),
    ...served('shop/dns', DNS, [on(node, web.ip()), on(node, web2.ip())], { ports: [{ port: 53, protocol: 'UDP' }] }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** Puts flows into the table of the node, which was emptied, and empties it when the test is over. */
function track(flows: readonly string[]): void {
  const file = join(world.lab.folder, 'flows');
  writeFileSync(file, flows.map((flow) => `-I -p tcp --state ESTABLISHED -t 6000 ${flow}\n`).join(''));
  world.run('conntrack', '-F');
  faults.undo(() => void world.run('conntrack', '-F'));
  world.run('conntrack', '-R', file);
}

/** How many of some connections from outside to the NodePort are answered. */
async function answeredOutside(count: number): Promise<number> {
  const outcomes = await outside.connectMany({ ip: node.ip(), port: NODE_PORT }, count, { timeoutMs: 900 });
  return outcomes.filter(({ kind }) => kind === 'answered').length;
}

// Which of the two is lost, and what explain says then, is in src/explain/stages/tracking/races.test.ts: this kernel loses none.
it('insert-race: two packets that one socket sends at once are joined by the kernel, whichever endpoints they got', async () => {
  const [queueNumber, port] = [7, '40100'];
  const send = `
    const [port, ip] = process.argv.slice(1);
    const socket = require('node:dgram').createSocket('udp4');
    let answers = 0;
    socket.on('message', () => answers++);
    socket.bind(Number(port), () => ['A', 'AAAA'].forEach((text) => socket.send(text, 53, ip)));
    setTimeout(() => (console.log(answers), socket.close()), ${patient(3000)});`;
  const queue = openPacketQueue(node.namespace.path, queueNumber);
  faults.undo(() => queue.close());
  // Behind translation, and before entries are made: neither packet finds that of the other.
  const held = `FORWARD -p udp --sport ${port} -m conntrack --ctstate NEW -j NFQUEUE --queue-num ${queueNumber}`;
  faults.run('iptables-legacy', `-t mangle -A ${held}`, `-t mangle -D ${held}`);
  const args = ['netns', 'exec', client.namespace.name, process.execPath, '-e', send, port, DNS];
  const sent = promisify(execFile)('ip', args);
  const waiting = () => Number(world.run('cat', '/proc/net/netfilter/nfnetlink_queue').trim().split(/\s+/)[2]);
  await expect.poll(waiting, { timeout: patient(10_000) }).toBe(2);
  expect(queue.release()).toBe(2);
  expect((await sent).stdout).toBe('2\n');
  faults.mend();
  const answer = await world.ask(`${DNS}:53`, client.ip(), '--proto', 'udp');
  expect(answer).toMatchObject({ verdict: 'works', warnings: [] });
  const { evidence } = answer.path.find(({ stage }) => stage === 'conntrack')!;
  expect(evidence).toContainEqual(
    expect.objectContaining({
      object: 'insert_failed, clashres',
      value: expect.stringMatching(/^0, [1-9]\d* in the last \d+ s/),
    }),
  );
});

describe('snat-ports', () => {
  /** Connections to the endpoint that are masqueraded with the node's address there, but for every so many-th port. */
  const take = (free = Number.POSITIVE_INFINITY) => {
    const all = Array.from({ length: LAST_PORT - FIRST_PORT + 1 }, (_, index) => index);
    const taken = all.filter((index) => (index + 1) % free !== 0);
    const reply = `-r ${web.ip()} -q 10.244.1.1 --reply-port-src ${TARGET}`;
    track(
      taken.map((index) => {
        const from = `-s 203.${index >> 8}.${index & 255}.9 --sport ${FIRST_PORT + index}`;
        const to = `-d ${node.ip()} --dport ${NODE_PORT}`;
        return `${from} ${to} ${reply} --reply-port-dst ${FIRST_PORT + index} -u SEEN_REPLY,ASSURED`;
      }),
    );
  };

  it('all ports are taken', async () => {
    expect(await answeredOutside(4)).toBe(4);
    take();
    const { cause } = await faults.expectCode(`node:${NODE_PORT}`, outside.ip(), 'snat-ports');
    expect(cause).toContain('64512 of 64512 source ports are taken for connections from 10.244.1.1');
    expect(await answeredOutside(8)).toBe(0);
    // Who is not masqueraded needs none.
    expect(await world.ask(VIP.IPv4, client.ip())).toMatchObject({ verdict: 'works' });
    expect(await answers(client, VIP.IPv4)).toBe(true);
  });

  it('few are left, and not every connection finds one', async () => {
    take(220);
    await faults.expectCode(`node:${NODE_PORT}`, outside.ip(), 'snat-ports', { verdict: 'partly' });
    const good = await answeredOutside(64);
    expect(good).toBeGreaterThan(0);
    expect(good).toBeLessThan(64);
  });
});

describe('conntrack-full', () => {
  /** @param unanswered every so many-th flow could make room */
  const fill = (unanswered = Number.POSITIVE_INFINITY) => {
    const most = Number(world.run('sysctl', '-n', 'net.netfilter.nf_conntrack_max'));
    track(
      Array.from({ length: most }, (_, index) => {
        const from = `-s 198.18.${(index >> 8) & 255}.${index & 255} --sport ${FIRST_PORT + (index >> 16)}`;
        return `${from} -d 198.19.0.1 --dport 80 ${index % unanswered === 0 ? '' : '-u SEEN_REPLY,ASSURED'}`;
      }),
    );
  };

  /**
   * Full of flows that stay, and nothing gets in. What connections of before have to send again has an entry as well, if it comes first:
   * that one makes room, or leaves it when it ends.
   */
  const expectFull = (lost: () => Promise<void>) =>
    vi.waitFor(
      async () => {
        fill();
        await lost();
      },
      { timeout: 120_000, interval: 0 },
    );

  it('nothing makes room: no connection works', async () => {
    await expectFull(async () => {
      const { cause } = await faults.expectCode(VIP.IPv4, client.ip(), 'conntrack-full');
      expect(cause).toContain('none that could make room');
      expect(await answers(client, VIP.IPv4), `${cause} ${world.run('conntrack', '-S')}`).toBe(false);
    });
    faults.mend();
    expect(await world.ask(VIP.IPv4, client.ip())).toMatchObject({ verdict: 'works', warnings: [] });
    expect(await answers(client, VIP.IPv4)).toBe(true);
  }, 300_000);

  it('who needs no entry has room', async () => {
    const direct = { ip: web.ip(), port: TARGET };
    const verdict = async () => (await world.ask(`${direct.ip}:${direct.port}`, client.ip())).verdict;
    const isLost = async () => {
      expect(await verdict()).toBe('fails');
      expect(await answers(client, direct.ip, direct.port)).toBe(false);
    };
    await expectFull(isLost);
    const between = `ip saddr ${client.ip()} ip daddr ${web.ip()} notrack`;
    const back = `ip saddr ${web.ip()} ip daddr ${client.ip()} notrack`;
    const hook = 'type filter hook prerouting priority raw';
    faults.nft(`table ip requests { chain raw { ${hook}; ${between}; } }`, 'ip requests');
    await expectFull(isLost);
    faults.nft(`table ip theirs { chain raw { ${hook}; ${back}; } }`, 'ip theirs');
    expect(await verdict()).toBe('works');
    expect(await answers(client, direct.ip, direct.port)).toBe(true);
    faults.mend();
    fill();
    faults.sysctl('net.bridge.bridge-nf-call-iptables', '0');
    expect(await verdict()).toBe('works');
    expect(await answers(client, direct.ip, direct.port)).toBe(true);
  }, 300_000);

  it('some make room: some connections work', async () => {
    // From a table that is nearly full the kernel takes such flows away by itself, now and then (gc_worker): on a busy
    // machine before the question.
    await vi.waitFor(
      async () => {
        fill(40);
        await faults.expectCode(VIP.IPv4, client.ip(), 'conntrack-full', { verdict: 'partly' });
      },
      { timeout: 120_000, interval: 0 },
    );
    const outcomes = await client.connectMany({ ip: VIP.IPv4, port: 80 }, 60, { timeoutMs: 900 });
    const good = outcomes.filter(({ kind }) => kind === 'answered').length;
    expect(good).toBeGreaterThan(0);
    expect(good).toBeLessThan(60);
  }, 300_000);
});

describe.each(['IPv4', 'IPv6'] as const)('invalid-rst (%s)', (family) => {
  const echo = async () => {
    const connection = await client.hold({ ip: VIP[family], port: 80 });
    mangleOneAnswer(faults, node, web, TARGET);
    const { kind } = await connection.echo({ timeoutMs: 3000 });
    await connection.close();
    faults.mend();
    return kind;
  };
  const warnings = async () => {
    const answer = await world.ask(VIP[family], client.ip(family));
    for (const { text } of answer.warnings) expect(text).toMatch(/^\d packets in the last \d+ s were none/);
    return answer.warnings.map(({ code }) => code);
  };

  it('an answer out of the window resets the connection, unless tracking is liberal', async () => {
    expect(await echo()).not.toBe('answered');
    expect(await warnings()).toEqual(['invalid-rst']);
    expect(await answers(client, VIP[family])).toBe(true);
    faults.sysctl('net.netfilter.nf_conntrack_tcp_be_liberal', '1');
    expect(await warnings()).toEqual([]);
    const connection = await client.hold({ ip: VIP[family], port: 80 });
    mangleOneAnswer(faults, node, web, TARGET);
    expect(await connection.echo({ timeoutMs: 5000 })).toMatchObject({ kind: 'answered' });
    await connection.close();
  });
});

it.each([
  ['tcp_timeout_syn_sent', 'TCP', VIP.IPv4, 80],
  ['tcp_timeout_established', 'TCP', VIP.IPv4, 80],
  ['tcp_timeout_unacknowledged', 'TCP', VIP.IPv4, 80],
  ['tcp_timeout_max_retrans', 'TCP', VIP.IPv4, 80],
  ['udp_timeout', 'UDP', DNS, 53],
] as const)('of flows that are forgotten at once it cannot be told: %s', async (name, protocol, ip, port) => {
  faults.sysctl(`net.netfilter.nf_conntrack_${name}`, '0');
  const [answer] = await world.askHere([{ destination: `${ip}:${port}`, source: client.ip(), protocol }]);
  expect(answer).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining(`nf_conntrack_${name} is 0`) });
  expect(await answers(client, ip, port, protocol)).toBe(false);
});

it('not untranslated: a connection that has ended is begun anew by the next one from its port', async () => {
  const [target, sourcePort] = [{ ip: VIP.IPv4, port: 80 }, 40_124];
  const dnat = `ip daddr ${VIP.IPv4} tcp dport 80 dnat to ${VIP.IPv4}:80`;
  faults.nft(`table ip theirs { chain nat { type nat hook prerouting priority -110; ${dnat}; } }`, 'ip theirs');
  faults.ip(`address add ${VIP.IPv4}/32 dev lo`, `address del ${VIP.IPv4}/32 dev lo`);
  await node.serve({ port: 80 });
  expect(await client.connect(target, { sourcePort })).toMatchObject({ by: 'node-1' });
  // Its last packets come behind the answer, and by the same rules.
  const entry = `TIME_WAIT .*sport=${sourcePort} dport=80 src=${VIP.IPv4}`;
  await expect.poll(() => world.run('conntrack', '-L', '-d', VIP.IPv4)).toMatch(new RegExp(entry));
  faults.mend();
  expect(await world.ask(VIP.IPv4, client.ip())).toMatchObject({ verdict: 'works' });
  // By itself the kernel of the client does not take a port that is to wait.
  faults.sysctl('net.ipv4.tcp_tw_reuse', '1', client);
  const again = () => client.connect(target, { sourcePort }).catch(() => undefined);
  await expect.poll(again).toMatchObject({ by: 'web' });
});

describe('a flow of a client that overrules the rules', () => {
  const target = { ip: VIP.IPv4, port: 80 };
  /** An entry that is not translated, as one that was begun before there were rules. */
  const begin = (sourcePort: number, zone = 0) =>
    track([
      `-w ${zone} -s ${client.ip()} --sport ${sourcePort} -d ${VIP.IPv4} --dport 80 -r ${VIP.IPv4} -q ${client.ip()} \
--reply-port-src 80 --reply-port-dst ${sourcePort} -u ASSURED`.replaceAll('\n', ' '),
    ]);

  it('counts as long as a socket may send by it', async () => {
    const sourcePort = 40_125;
    const connection = await client.hold(target, { sourcePort });
    expect(await connection.echo()).toMatchObject({ kind: 'answered' });
    // An acknowledgement may come late.
    await delay(patient(300));
    begin(sourcePort);
    await faults.expectCode(VIP.IPv4, client.ip(), 'untranslated', { verdict: 'partly' });
    expect((await connection.echo({ timeoutMs: 900 })).kind).not.toBe('answered');
    await connection.close();
  });

  it('does not where it is of a zone of others', async () => {
    const sourcePort = 40_128;
    const connection = await client.hold(target, { sourcePort });
    await delay(patient(300));
    begin(sourcePort, 7);
    const answer = await world.ask(VIP.IPv4, client.ip());
    expect(answer, answer.cause).toMatchObject({ verdict: 'works' });
    expect(answer.warnings.map(({ code }) => code)).not.toContain('untranslated');
    expect(await client.connect(target)).toMatchObject({ kind: 'answered' });
    await connection.close();
  });

  it('is a warning where no socket does: connections from other ports work', async () => {
    const sourcePort = 40_130;
    begin(sourcePort);
    const answer = await world.ask(VIP.IPv4, client.ip());
    expect(answer, answer.cause).toMatchObject({ verdict: 'works' });
    const text = expect.stringContaining('no socket has that port now');
    expect(answer.warnings).toContainEqual({ code: 'untranslated', text });
    const outcomes = await client.connectMany(target, 20);
    expect(outcomes.every(({ kind }) => kind === 'answered')).toBe(true);
    expect(await client.connect(target, { sourcePort, timeoutMs: 900 })).not.toMatchObject({ kind: 'answered' });
  });

  it('counts where the client has few ports, and soon gets that one again', async () => {
    const sourcePort = 40_135;
    begin(sourcePort);
    faults.sysctl('net.ipv4.ip_local_port_range', `${sourcePort} ${sourcePort + 3}`, client);
    await faults.expectCode(VIP.IPv4, client.ip(), 'untranslated', { verdict: 'partly' });
    const outcomes = await client.connectMany(target, 12, { timeoutMs: 900, concurrency: 1 });
    const good = outcomes.filter(({ kind }) => kind === 'answered').length;
    expect(good).toBeGreaterThan(0);
    expect(good).toBeLessThan(12);
  });
});
