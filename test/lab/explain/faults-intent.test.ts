import { afterAll, describe, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { ExplainWorld } from './explain-world.ts';
import { Faults, answers as reachesFrom } from './faults.ts';
import { ON_LINK, testIntent } from './intent-suite.ts';

// What the objects say, in mode nftables, whose NodePorts are at the node's primary addresses alone.

const world = new ExplainWorld();
const { node, client, outside } = world;
const faults = new Faults(world);

afterAll(removeAll);
testIntent(world, []);

describe.each(['IPv4', 'IPv6'] as const)('no-path-to-vip (%s)', (family) => {
  const [vip, from] = [ON_LINK[family], outside.ip(family)];
  const version = family === 'IPv4' ? '-4' : '-6';
  const reaches = () => reachesFrom(outside, vip);

  it('nobody announces the address: with --probe it is told, and not without', async () => {
    expect(await reaches()).toBe(false);
    expect(await world.ask(vip, from)).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
    await faults.expectCode(vip, from, 'no-path-to-vip', { flags: ['--probe'] });
    expect(await world.ask(vip, client.ip(family))).toMatchObject({ verdict: 'works' });
    expect(await reachesFrom(client, vip)).toBe(true);
  });
  it('works when a packet has come, and when this node has the address', async () => {
    faults.ip(
      `${version} route add ${vip} via ${node.ip(family)}`,
      `${version} route del ${vip} via ${node.ip(family)}`,
      outside,
    );
    expect(await reaches()).toBe(true);
    expect(await world.ask(vip, from)).toMatchObject({ verdict: 'works' });
    faults.mend();
    world.run('conntrack', '-F');
    expect(await world.ask(vip, from)).toMatchObject({ verdict: 'unknown' });
    const [address, nodad] = family === 'IPv4' ? [`${vip}/32`, ''] : [`${vip}/128`, ' nodad'];
    faults.ip(`address add ${address} dev eth0${nodad}`, `address del ${address} dev eth0`);
    expect(await reaches()).toBe(true);
    expect(await world.ask(vip, from)).toMatchObject({ verdict: 'works' });
  });
});

it('fits one screen, in ASCII where the terminal has nothing else', async () => {
  const { stdout } = await world.command('explain', 'svc/shop/half', '--from', world.web2.ip());
  const lines = stdout.trimEnd().split('\n');
  expect(lines[0]).toMatch(
    /^PARTLY {2}pod 10\.244\.1\.\d+ -> svc shop\/half \(10\.96\.0\.20:80\/tcp\) +\[target-port\]$/,
  );
  expect(lines.length).toBeLessThanOrEqual(24);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(100);
  expect(stdout).toContain('✓');
});

it('suggests what was meant, and says how to ask', async () => {
  expect((await world.ask('svc/shop/wbe', client.ip())).cause).toContain('did you mean shop/web');
  expect(await world.command('explain', 'web')).toMatchObject({ exitCode: 64, stdout: '' });
});
