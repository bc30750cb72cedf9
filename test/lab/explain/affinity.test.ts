import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { type Host, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { Faults } from './faults.ts';

// Affinity in the modes that write iptables: which endpoint holds a client is in lists of `-m recent`, as are clients
// that others remember.

useOwnLockFile();
const VIP = '10.96.0.10';
const [SECONDS, TRIES] = [3600, 8];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
/** An endpoint where nobody listens. */
const idle = node.addPod('idle');

beforeAll(
  () =>
    world.prepare(
      served('shop/web', VIP, [on(node, web.ip()), on(node, idle.ip())], {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: SECONDS } },
      }),
    ),
  300_000,
);
afterAll(async () => {
  await world.end();
  removeAll();
});

describe.each(['nft', 'legacy'])('iptables, variant %s', (variant) => {
  const program = `iptables-${variant}`;
  const sh = (line: string) => world.run('sh', '-c', line);
  beforeAll(async () => {
    await world.startAgent('--proxy-mode', 'iptables', '--iptables-variant', variant);
  }, 300_000);
  afterAll(async () => {
    await world.end();
    await world.command('cleanup');
  });

  /** As a connection to that endpoint would leave it. */
  function hold(pod: Host): void {
    const to = `--to-destination ${pod.ip()}:${TARGET}`;
    const rule = sh(`${program}-save -t nat`)
      .split('\n')
      .find((line) => line.includes(to));
    const list = `/proc/net/xt_recent/${/--name (\S+)/.exec(rule!)![1]}`;
    sh(`echo +${client.ip()} > ${list}`);
    faults.undo(() => void sh(`echo / > ${list}`));
  }

  async function answered(): Promise<number> {
    const outcomes = await client.connectMany({ ip: VIP, port: 80 }, TRIES, { timeoutMs: patient(1500) });
    return outcomes.filter(({ kind }) => kind === 'answered').length;
  }

  it('a client that nobody holds gets either', async () => {
    await faults.expectCode(VIP, client.ip(), 'target-port', { verdict: 'partly' });
  });

  it.each([
    ['web', web, TRIES],
    ['idle', idle, 0],
  ] as const)('of one that %s may hold it cannot be told that some connections fail', async (_, pod, wanted) => {
    hold(pod);
    const answer = await world.ask(VIP, client.ip());
    expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('-m recent') });
    expect(await answered()).toBe(wanted);
  });

  it('all that are dropped are, whoever holds the client', async () => {
    hold(web);
    faults.undo(() => void sh(`${program} -D FORWARD -p tcp --dport ${TARGET} -j DROP`));
    sh(`${program} -I FORWARD -p tcp --dport ${TARGET} -j DROP`);
    await faults.expectCode(VIP, client.ip(), 'foreign-drop');
    expect(await answered()).toBe(0);
  });

  it('all are lost where the one is dropped and the other’s answers are, whoever holds the client', async () => {
    hold(web);
    faults.undo(() => void sh(`${program} -D FORWARD -p tcp ! -d ${web.ip()} -j DROP`));
    sh(`${program} -I FORWARD -p tcp ! -d ${web.ip()} -j DROP`);
    await faults.expectCode(VIP, client.ip(), 'foreign-drop');
    expect(await answered()).toBe(0);
  });

  it('what nobody remembers is not dropped, and what was just remembered is', async () => {
    faults.undo(() => void sh(`${program} -D FORWARD -m recent --rcheck --name theirs -j DROP`));
    sh(`${program} -I FORWARD -m recent --rcheck --name theirs -j DROP`);
    expect(await world.ask(`${web.ip()}:${TARGET}`, client.ip())).toMatchObject({ verdict: 'works' });
    expect((await client.connect({ ip: web.ip(), port: TARGET })).kind).toBe('answered');
    faults.undo(() => void sh(`${program} -D FORWARD -m recent --set --name theirs`));
    sh(`${program} -I FORWARD -m recent --set --name theirs`);
    const { verdict } = await world.ask(`${web.ip()}:${TARGET}`, client.ip());
    const really = (await client.connect({ ip: web.ip(), port: TARGET }, { timeoutMs: 800 })).kind;
    expect([verdict, really]).toEqual(['unknown', 'timeout']);
  });
});
