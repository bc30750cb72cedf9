import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeRouteKernel } from '../../../test/fakes/routes/fake-route-kernel.ts';
import { FakeWireguardKernel } from '../../../test/fakes/routes/fake-wireguard-kernel.ts';
import { type NodeSpec, numberedNode } from '../../../test/fakes/routes/node-objects.ts';
import { type IpFamily, parseCidr, parseIp } from '../../core/index.ts';
import { formatKey, generatePrivateKey, publicKeyOf } from '../../netlink/wireguard/index.ts';
import type { RouteSettings } from '../plan/tunnel.ts';
import type { RouteEvent } from '../sync/events.ts';
import { FamilyRoutes } from '../sync/family-routes.ts';
import type { WireguardEvent } from './events.ts';
import { wireguardAnnotations } from './identity.ts';
import { WireguardTunnel } from './wireguard-tunnel.ts';

const FAMILIES = ['IPv4', 'IPv6'] as const;
const UPLINK: Readonly<Record<IpFamily, string>> = { IPv4: '10.0.0.1/24', IPv6: 'fd00::1/120' };
/** Public keys that differ; nobody has their private ones. */
const keyOf = (number: number) => Uint8Array.from({ length: 32 }, (_, at) => [number & 255, number >> 8][at] ?? 7);
const text = (number: number) => formatKey(keyOf(number));
const peer = (number: number, change: Partial<NodeSpec> & { readonly key?: number; readonly port?: number } = {}) =>
  numberedNode(number, {
    annotations: wireguardAnnotations(keyOf(change.key ?? number), change.port ?? 51820),
    ...change,
  });

/** A node with both families, on one WireGuard device. Another one may go on where it ended. */
function world(
  options: {
    readonly settings?: Partial<RouteSettings>;
    readonly keepaliveSeconds?: number;
    readonly before?: {
      readonly kernels: Readonly<Record<IpFamily, FakeRouteKernel>>;
      readonly wireguard: FakeWireguardKernel;
    };
    readonly readKey?: () => Uint8Array;
    readonly mtu?: number;
  } = {},
) {
  const clock = new FakeClock();
  const events: (RouteEvent | WireguardEvent)[] = [];
  const observe = (event: RouteEvent | WireguardEvent) => events.push(event);
  const kernels = options.before?.kernels ?? { IPv4: new FakeRouteKernel('IPv4'), IPv6: new FakeRouteKernel('IPv6') };
  const wireguard = options.before?.wireguard ?? new FakeWireguardKernel(2);
  const privateKey = generatePrivateKey();
  const tunnel = new WireguardTunnel({
    readKey: options.readKey ?? (() => privateKey),
    port: 51820,
    keepaliveSeconds: options.keepaliveSeconds ?? 0,
    mtu: undefined,
    kernel: wireguard,
    clock,
    observe,
  });
  const families = FAMILIES.map((family) => {
    const kernel = kernels[family];
    if (!options.before) kernel.addLink({ name: 'eth0', addresses: [UPLINK[family]], mtu: options.mtu ?? 1500 });
    const settings = { mode: 'wireguard', vni: 1, port: 8472, mtu: undefined, ...options.settings } as const;
    return new FamilyRoutes({ family, nodeName: 'n1', settings, wireguard: tunnel, kernel, clock, observe });
  });
  const tell = (...nodes: ReturnType<typeof peer>[]) => {
    for (const routes of families) for (const node of nodes) routes.nodeChanged(node);
  };
  const forget = (name: string) => {
    for (const routes of families) routes.nodeRemoved(name);
  };
  const start = async () => {
    for (const routes of families) routes.start();
    await clock.advance(200);
  };
  const stop = async () => {
    for (const routes of families) await routes.stop();
    await tunnel.stop();
  };
  const of = <K extends (typeof events)[number]['kind']>(kind: K) =>
    events.filter((event): event is Extract<(typeof events)[number], { kind: K }> => event.kind === kind);
  const leftOut = () => of('leftOut').map(({ family, name, reason }) => `${family} ${name}: ${reason}`);
  return { clock, kernels, wireguard, privateKey, tunnel, families, events, tell, forget, start, stop, of, leftOut };
}

const line = (number: number, change: { key?: number; port?: number; keepalive?: number; at?: string } = {}) => {
  const at = change.at ?? `0a0000${number.toString(16).padStart(2, '0')}`;
  const hex = number.toString(16);
  const own = [`10.0.0.${number}/32`, `10.64.${number}.0/24`, `fd00::${hex}/128`, `fd00:10:244:${hex}::/64`].sort();
  return `${text(change.key ?? number)} ${at}:${change.port ?? 51820} ${change.keepalive ?? 0} ${own.join(' ')}`;
};

describe('the WireGuard device', () => {
  it('is one for both families: every other node a peer, with a route for each of its ranges', async () => {
    const { kernels, wireguard, privateKey, tell, start, stop, of, tunnel } = world({ keepaliveSeconds: 25 });
    tell(numberedNode(1), peer(2), peer(3, { port: 4711 }));
    await start();
    expect(wireguard.print()).toEqual([line(2, { keepalive: 25 }), line(3, { port: 4711, keepalive: 25 })].sort());
    expect(wireguard.device).toMatchObject({ privateKey, port: 51820 });
    expect(kernels.IPv4.print()).toContain('10.64.2.0/24 dev nodeplane-wg');
    expect(kernels.IPv6.print()).toContain('fd00:10:244:2::/64 dev nodeplane-wg');
    expect(kernels.IPv6.device('nodeplane-wg')).toMatchObject({ kind: 'wireguard', up: true, mtu: 1420 });
    expect(of('keyInForce')).toEqual([{ kind: 'keyInForce', publicKey: publicKeyOf(privateKey) }]);
    expect(of('synced').at(-1)).toMatchObject({ peers: expect.anything() });
    expect(await tunnel.verify()).toEqual([]);
    await stop();
  });

  it('with --routes auto has the nodes as peers that are not on the link', async () => {
    const { kernels, wireguard, tell, start, stop } = world({ settings: { mode: 'auto', tunnel: 'wireguard' } });
    tell(numberedNode(1), numberedNode(2), peer(3, { ips: ['192.168.1.3', 'fd01::3'] }));
    await start();
    expect(wireguard.device!.peers.map(({ publicKey }) => formatKey(publicKey))).toEqual([text(3)]);
    expect(kernels.IPv4.print()).toContain('10.64.2.0/24 via 10.0.0.2 dev eth0');
    expect(kernels.IPv4.print()).toContain('10.64.3.0/24 dev nodeplane-wg');
    await stop();
  });

  it('a node that changes costs the same beside ten peers and beside three hundred', async () => {
    const cost = async (count: number) => {
      const { clock, wireguard, tell, forget, start, stop } = world();
      const until = async (isDone: () => boolean) => {
        while (!isDone()) await clock.advance(50);
      };
      const last = () => wireguard.device.peers.find(({ publicKey }) => formatKey(publicKey) === text(5555));
      tell(numberedNode(1));
      for (let number = 2; number < count; number++) tell(peer(number));
      await start();
      await until(() => wireguard.device.peers.length === count - 2);
      await clock.advance(2000);
      const before = wireguard.requests;
      tell(peer(5555));
      await until(() => last()?.allowedIps.length === 4);
      tell(peer(5555, { port: 4 }));
      await until(() => last()?.endpoint?.port === 4);
      forget('n5555');
      await until(() => last() === undefined);
      await stop();
      return wireguard.requests - before;
    };
    const few = await cost(10);
    expect(await cost(300)).toBe(few);
    expect(few).toBeLessThan(8);
  });

  it('an agent that starts again changes nothing, whichever family it knows first', async () => {
    const first = world();
    first.tell(numberedNode(1), peer(2), peer(3));
    await first.start();
    await first.stop();
    const { wireguard, kernels, privateKey } = first;
    const printed = wireguard.print();
    wireguard.changes.length = 0;
    const next = world({ before: { kernels, wireguard }, readKey: () => privateKey });
    next.tell(numberedNode(1), peer(3), peer(2));
    next.families[1]!.start();
    await next.clock.advance(5000);
    expect(wireguard.print()).toEqual(printed);
    next.families[0]!.start();
    await next.clock.advance(5000);
    expect(wireguard.changes).toEqual([]);
    expect(wireguard.print()).toEqual(printed);
    await next.stop();
  });

  it('a new key of a node takes its addresses over in one step, and is spoken to at once', async () => {
    const { clock, wireguard, tell, start, stop } = world();
    tell(numberedNode(1), peer(2), peer(3));
    await start();
    wireguard.changes.length = 0;
    tell(peer(2, { key: 99 }));
    await clock.advance(200);
    expect(wireguard.print()).toEqual([line(2, { key: 99 }), line(3)].sort());
    const [taken, quiet, removed, ...more] = wireguard.changes.filter(
      ({ publicKey }) => formatKey(publicKey) !== text(3),
    );
    expect(taken).toMatchObject({ publicKey: keyOf(99), keepaliveSeconds: expect.any(Number) });
    expect(taken!.keepaliveSeconds).toBeGreaterThan(0);
    expect(quiet).toEqual({ publicKey: keyOf(99), updateOnly: true, keepaliveSeconds: 0 });
    expect(removed).toEqual({ publicKey: keyOf(2), remove: true });
    expect(more.filter(({ remove }) => remove)).toEqual([]);
    await stop();
  });

  it('our own new key comes into force when the file has it, and is told', async () => {
    let key = generatePrivateKey();
    const { clock, wireguard, tell, start, stop, of } = world({ readKey: () => key });
    tell(numberedNode(1), peer(2));
    await start();
    key = generatePrivateKey();
    await clock.advance(6000);
    expect(wireguard.device!.privateKey).toEqual(key);
    expect(
      of('keyInForce')
        .map(({ publicKey }) => publicKey)
        .at(-1),
    ).toEqual(publicKeyOf(key));
    expect(wireguard.print()).toEqual([line(2)]);
    await stop();
  });

  it('a key file that cannot be read any more is told once, and the key before stays', async () => {
    const key = generatePrivateKey();
    let isBroken = false;
    const readKey = () => {
      if (isBroken) throw new Error('it is broken');
      return key;
    };
    const { clock, wireguard, tell, start, stop, of } = world({ readKey });
    tell(numberedNode(1), peer(2));
    await start();
    isBroken = true;
    await clock.advance(60_000);
    expect(of('keyFailed')).toHaveLength(1);
    expect(wireguard.device!.privateKey).toEqual(key);
    await stop();
  });

  it('without a key that can be used there are no routes, in words, until there is one', async () => {
    let isBroken = true;
    const key = generatePrivateKey();
    const readKey = () => {
      if (isBroken) throw new Error('it is broken');
      return key;
    };
    const { clock, kernels, tell, start, stop, of } = world({ readKey });
    tell(numberedNode(1), peer(2));
    await start();
    expect(of('syncFailed').map(({ error }) => String(error))).toContain('Error: it is broken');
    expect(kernels.IPv4.print()).not.toContain('10.64.2.0/24');
    isBroken = false;
    await clock.advance(120_000);
    expect(kernels.IPv4.print()).toContain('10.64.2.0/24 dev nodeplane-wg');
    await stop();
  });

  it('IPv6 needs 1280 bytes; IPv4 goes on without it', async () => {
    const { kernels, tell, start, stop, of } = world({ mtu: 1350 });
    tell(numberedNode(1), peer(2));
    await start();
    expect(of('syncFailed').map(({ error }) => String(error))).toContainEqual(
      expect.stringContaining('Cannot carry IPv6 by WireGuard over'),
    );
    expect(kernels.IPv4.device('nodeplane-wg')).toMatchObject({ mtu: 1270 });
    await stop();
  });
});

describe('nodes that cannot be peers', () => {
  it('without a key, or with that of an older node or ours, are left out in words', async () => {
    const { wireguard, privateKey, tell, start, stop, leftOut } = world();
    tell(
      numberedNode(1),
      peer(2, { year: 2020 }),
      peer(3, { year: 2021, key: 2 }),
      numberedNode(4),
      numberedNode(5, { annotations: { 'nodeplane.io/wireguard-public-key': 'AAAA' } }),
      numberedNode(6, { annotations: wireguardAnnotations(publicKeyOf(privateKey), 51820) }),
    );
    await start();
    expect(wireguard.print()).toEqual([line(2)]);
    const told = leftOut();
    for (const family of FAMILIES) {
      expect(told).toContain(`${family} n3: its WireGuard key ${text(2)} is also that of Node "n2", which is older`);
      for (const name of ['n4', 'n5'])
        expect(told).toContainEqual(expect.stringContaining(`${family} ${name}: it tells no WireGuard key of its own`));
      expect(told).toContainEqual(expect.stringMatching(`^${family} n6: its WireGuard key .* of this node`));
    }
    await stop();
  });

  it('that the kernel refuses keep nobody from being reached, and are tried again', async () => {
    const { clock, wireguard, tell, start, stop, of } = world();
    wireguard.refused.add(text(2));
    tell(numberedNode(1), peer(2), peer(3));
    await start();
    expect(wireguard.print()).toEqual([line(3)]);
    expect(of('refused').at(-1)).toMatchObject({
      name: 'n2',
      reason: expect.stringContaining('the kernel refuses it'),
    });
    wireguard.refused.clear();
    await clock.advance(130_000);
    expect(wireguard.print()).toEqual([line(2), line(3)].sort());
    expect(of('refused').at(-1)).toEqual({ kind: 'refused', name: 'n2', reason: undefined });
    await stop();
  });
});

describe('what others do to the device', () => {
  it.each([
    ['a peer is removed', () => undefined],
    ['a range is taken away', (one: object) => ({ ...one, allowedIps: [] })],
    ['a range is added', (one: object) => ({ ...one, allowedIps: [parseCidr('10.9.0.0/16')] })],
    ['a silent peer is sent elsewhere', (one: object) => ({ ...one, endpoint: { ip: parseIp('10.9.9.9'), port: 1 } })],
  ])('%s: found within a minute and mended', async (_, change) => {
    const { clock, wireguard, tell, start, stop, of } = world();
    tell(numberedNode(1), peer(2), peer(3));
    await start();
    const good = wireguard.print();
    wireguard.meddle((one) => change(one) as typeof one);
    expect(wireguard.print()).not.toEqual(good);
    await clock.advance(65_000);
    expect(wireguard.print()).toEqual(good);
    expect(of('driftFound')).toHaveLength(1);
    await stop();
  });

  it('a peer that was heard from elsewhere is sent to there', async () => {
    const { clock, wireguard, tell, start, stop, of } = world();
    tell(numberedNode(1), peer(2));
    await start();
    const endpoint = { ip: parseIp('10.9.9.9'), port: 1 };
    const heard = () => Math.floor(clock.wallTime() / 1000);
    wireguard.meddle((one) => ({ ...one, endpoint, lastHandshake: heard() }));
    await clock.advance(65_000);
    expect(wireguard.device!.peers[0]!.endpoint).toEqual(endpoint);
    expect(of('driftFound')).toEqual([]);
    // Nothing was heard for three minutes.
    await clock.advance(200_000);
    expect(wireguard.print()).toEqual([line(2)]);
    await stop();
  });

  it('a peer that was heard from elsewhere is sent to there by an agent that is started again, too', async () => {
    const first = world();
    first.tell(numberedNode(1), peer(2));
    await first.start();
    const { wireguard, kernels, privateKey, clock } = first;
    const endpoint = { ip: parseIp('10.9.9.9'), port: 1 };
    wireguard.meddle((one) => ({ ...one, endpoint, lastHandshake: Math.floor(clock.wallTime() / 1000) }));
    await first.stop();
    const next = world({ before: { kernels, wireguard }, readKey: () => privateKey });
    next.tell(numberedNode(1), peer(2));
    await next.start();
    expect(wireguard.device!.peers[0]!.endpoint).toEqual(endpoint);
    next.tell(peer(2, { ips: ['10.0.0.77', 'fd00::77'] }));
    await next.clock.advance(200);
    expect(wireguard.device!.peers[0]!.endpoint).toMatchObject({ ip: parseIp('10.0.0.77') });
    await next.stop();
  });

  it('a node that was away for less than a session is spoken to when it is back', async () => {
    const { clock, wireguard, tell, forget, start, stop } = world();
    tell(numberedNode(1), peer(2), peer(3));
    await start();
    const back = async (awayMs: number) => {
      forget('n2');
      await clock.advance(awayMs);
      wireguard.changes.length = 0;
      tell(peer(2));
      await clock.advance(200);
      expect(wireguard.print()).toEqual([line(2), line(3)].sort());
      return wireguard.changes.flatMap(({ keepaliveSeconds }) => keepaliveSeconds ?? []);
    };
    expect(await back(2000)).toEqual([expect.any(Number), 0]);
    expect((await back(200_000)).filter((seconds) => seconds > 0)).toEqual([]);
    await stop();
  });

  it('another mode of the routes takes the device away', async () => {
    const first = world();
    first.tell(numberedNode(1), peer(2));
    await first.start();
    await first.stop();
    const { kernels, wireguard } = first;
    const next = world({ before: { kernels, wireguard }, settings: { mode: 'host-gw' } });
    next.tell(numberedNode(1), peer(2));
    await next.start();
    expect(kernels.IPv4.print()).toContain('10.64.2.0/24 via 10.0.0.2 dev eth0');
    expect(kernels.IPv4.print()).not.toContain('nodeplane-wg');
    await next.stop();
  });
});
