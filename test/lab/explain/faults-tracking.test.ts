import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, mangleOneAnswer } from './faults.ts';

// What connection tracking and translation run out of, and what passes them by. Tables are filled as conntrack(8) restores them.

const world = new ExplainWorld();
const { node, web, client, outside } = world;
const faults = new Faults(world);
const VIP = { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' } as const;
const NODE_PORT = 30_080;
/** Translation chooses source ports from here on. */
const [FIRST_PORT, LAST_PORT] = [1024, 65_535];

beforeAll(async () => {
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  await world.begin([
    ...served('shop/web', VIP.IPv4, [on(node, web.ip())], ports),
    ...served('shop/web6', VIP.IPv6, [on(node, web.ip('IPv6'))]),
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

  it('nothing makes room: no connection works', async () => {
    fill();
    const { cause } = await faults.expectCode(VIP.IPv4, client.ip(), 'conntrack-full');
    expect(cause).toContain('none that could make room');
    expect(await answers(client, VIP.IPv4)).toBe(false);
    faults.mend();
    expect(await world.ask(VIP.IPv4, client.ip())).toMatchObject({ verdict: 'works', warnings: [] });
    expect(await answers(client, VIP.IPv4)).toBe(true);
  }, 300_000);

  it('some make room: some connections work', async () => {
    fill(10);
    await faults.expectCode(VIP.IPv4, client.ip(), 'conntrack-full', { verdict: 'partly' });
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
  const warnings = async () => (await world.ask(VIP[family], client.ip(family))).warnings.map(({ code }) => code);

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
