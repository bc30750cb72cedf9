import { describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeIptables } from '../../../test/fakes/fake-iptables.ts';
import { FakeIpvsKernel } from '../../../test/fakes/fake-ipvs-kernel.ts';
import { type SamplePort, sampleNode, samplePlan, samplePort } from '../../../test/samples/sample-plan.ts';
import { parseCidr, parseIp } from '../../core/index.ts';
import type { ServicePortPlan } from '../index.ts';
import { IpvsDataplane } from './dataplane.ts';

const MINUTE = 60_000;
const NODE = '192.168.0.7';

function setup(ports: readonly ServicePortPlan[] = [], excludeCidrs: readonly string[] = []) {
  const kernel = new FakeIpvsKernel('IPv4', [NODE]);
  const failures: unknown[] = [];
  const clock = new FakeClock(undefined, (error) => failures.push(error));
  const { exec } = new FakeIptables();
  const make = () =>
    new IpvsDataplane({
      family: 'IPv4',
      variant: 'nft',
      exec,
      kernel: kernel.reopened(),
      clock,
      excludeCidrs: excludeCidrs.map(parseCidr),
    });
  const node = sampleNode({ nodeIp: parseIp(NODE) });
  const plan = samplePlan('IPv4', node, ports);
  const live = plan.ports as Map<string, ServicePortPlan>;
  let dataplane = make();
  return {
    kernel,
    clock,
    plan,
    failures,
    resync: () => dataplane.resync(plan),
    verify: () => dataplane.verify(),
    cleanup: () => dataplane.cleanup(),
    retire: (signal?: AbortSignal) => dataplane.retire(signal),
    traffic: () => dataplane.traffic(),
    close: () => dataplane.close(),
    /** As a new process: nothing is remembered but what the kernel holds. */
    async restart() {
      await dataplane.close();
      dataplane = make();
      await dataplane.resync(plan);
    },
    async upsert(...samples: SamplePort[]) {
      const upserted = samples.map(samplePort);
      for (const port of upserted) live.set(port.key, port);
      kernel.operations.length = 0;
      return dataplane.sync(plan, { upserted, removed: [] });
    },
    async remove(key: string) {
      const removed = live.get(key)!;
      live.delete(key);
      kernel.operations.length = 0;
      return dataplane.sync(plan, { upserted: [], removed: [removed] });
    },
  };
}

const web = (remote: string[], more: Partial<SamplePort> = {}): SamplePort => ({
  name: 'shop/web:http',
  clusterIp: '10.96.0.1',
  remote,
  ...more,
});
const VIP = '10.96.0.1:80/TCP';
const [A, B, C] = ['10.244.2.1:8080', '10.244.2.2:8080', '10.244.2.3:8080'];

describe('a change', () => {
  it('of one endpoint is one message; of one that is replaced two', async () => {
    const { upsert, kernel, resync } = setup();
    await resync();
    await upsert(web([A]));
    await upsert(web([A, B]));
    expect(kernel.operations.map(({ kind }) => kind)).toEqual(['newDestination']);
    await upsert(web([A, C]));
    expect(kernel.operations.map(({ kind }) => kind)).toEqual(['newDestination', 'setDestination']);
    await upsert(web([A, C]));
    expect(kernel.operations).toEqual([]);
  });

  it('reads nothing from the kernel', async () => {
    const { upsert, kernel, resync } = setup();
    await resync();
    await upsert(web([A]));
    const before = kernel.destinationListings;
    await upsert(web([A, B]));
    expect(kernel.destinationListings).toBe(before);
  });
});

describe('a full sync', () => {
  it('repairs just what others changed', async () => {
    const { resync, kernel, verify } = setup([
      samplePort(web([A, B])),
      samplePort({ name: 'x/y', clusterIp: '10.96.0.2', remote: [C] }),
    ]);
    await resync();
    const before = kernel.dump();
    kernel.servers.get(VIP)!.destinations.delete(A);
    kernel.servers.delete('10.96.0.2:80/TCP');
    kernel.elements.delete('KUBE-CLUSTER-IP 10.96.0.1,tcp:80');
    kernel.bound.delete('10.96.0.1');
    expect(await verify()).toEqual([
      { object: 'virtual server 10.96.0.2:80/TCP', difference: 'missing' },
      { object: `destination of ${VIP} ${A}`, difference: 'missing' },
      { object: 'ipset member KUBE-CLUSTER-IP 10.96.0.1,tcp:80', difference: 'missing' },
      { object: 'address of kube-ipvs0 10.96.0.1', difference: 'missing' },
    ]);
    kernel.operations.length = 0;
    await resync();
    expect(kernel.dump()).toEqual(before);
    expect(kernel.operations).toHaveLength(5);
  });

  it('is made when a change meets a kernel that is not as thought', async () => {
    const { resync, upsert, kernel } = setup([samplePort(web([A]))]);
    await resync();
    kernel.servers.delete(VIP);
    const { leftOut } = await upsert(web([A, B]));
    expect(leftOut).toEqual([]);
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${A}=1 ${B}=1`);
  });
});

describe('an endpoint that goes', () => {
  it('gets weight 0 and stays until its connections are over', async () => {
    const { resync, upsert, kernel, clock } = setup([samplePort(web([A, B]))]);
    await resync();
    kernel.setConnections(VIP, A, 3);
    await upsert(web([B]));
    await clock.advance(5 * MINUTE);
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${A}=0 ${B}=1`);
    kernel.setConnections(VIP, A, 0);
    await clock.advance(2000);
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${B}=1`);
  });

  it('goes when the grace period is over, connections or not', async () => {
    const { resync, upsert, kernel, clock } = setup([samplePort(web([A, B]))]);
    await resync();
    kernel.setConnections(VIP, A, 3);
    await upsert(web([B]));
    await clock.advance(14 * MINUTE);
    expect(kernel.servers.get(VIP)!.destinations.has(A)).toBe(true);
    await clock.advance(2 * MINUTE);
    expect(kernel.servers.get(VIP)!.destinations.has(A)).toBe(false);
  });

  it('is taken back as it is when it is wanted again', async () => {
    const { resync, upsert, kernel, clock } = setup([samplePort(web([A, B]))]);
    await resync();
    kernel.setConnections(VIP, A, 3);
    await upsert(web([B]));
    await upsert(web([A, B]));
    expect(kernel.operations.map(({ kind }) => kind)).toEqual(['setDestination']);
    await clock.advance(20 * MINUTE);
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${A}=1 ${B}=1`);
  });

  it('goes on being drained after a restart', async () => {
    const { resync, upsert, restart, kernel, clock } = setup([samplePort(web([A, B]))]);
    await resync();
    kernel.setConnections(VIP, A, 1);
    await upsert(web([B]));
    await restart();
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${A}=0 ${B}=1`);
    await clock.advance(MINUTE);
    expect(kernel.servers.get(VIP)!.destinations.has(A)).toBe(true);
    kernel.setConnections(VIP, A, 0);
    await clock.advance(2000);
    expect(kernel.servers.get(VIP)!.destinations.has(A)).toBe(false);
  });

  it('goes at once if it serves UDP', async () => {
    const dns = (remote: string[]) => web(remote, { protocol: 'UDP' });
    const { resync, upsert, kernel } = setup([samplePort(dns([A, B]))]);
    await resync();
    kernel.setConnections('10.96.0.1:80/UDP', A, 1);
    await upsert(dns([B]));
    expect(kernel.operations.map(({ kind }) => kind)).toEqual(['deleteDestination']);
  });
});

describe('a Service that goes', () => {
  it('keeps virtual server and address until its connections are over, and turns new ones away', async () => {
    const { resync, remove, kernel, clock, verify } = setup([samplePort(web([A]))]);
    await resync();
    kernel.setConnections(VIP, A, 1);
    await remove('shop/web:http/TCP');
    expect(kernel.dump()).toEqual({
      'address 10.96.0.1': '',
      'member KUBE-IPVS-IPS 10.96.0.1': '',
      'member KUBE-IPVS-SERVERS 10.96.0.1,tcp:80': '',
      [`server ${VIP}`]: `rr 0 0 ${A}=0`,
    });
    expect(await verify()).toEqual([]);
    kernel.setConnections(VIP, A, 0);
    await clock.advance(2000);
    expect(kernel.dump()).toEqual({});
    expect(await verify()).toEqual([]);
  });

  it('is looked at again after a look that failed, which is told', async () => {
    const { resync, remove, kernel, clock, failures } = setup([samplePort(web([A]))]);
    await resync();
    kernel.setConnections(VIP, A, 1);
    await remove('shop/web:http/TCP');
    const list = vi.spyOn(kernel, 'listDestinations').mockImplementation(() => {
      throw new Error('EMFILE');
    });
    await clock.advance(1000);
    expect(failures).toEqual([new Error('EMFILE')]);
    list.mockRestore();
    kernel.setConnections(VIP, A, 0);
    await resync();
    await clock.advance(2000);
    expect(kernel.dump()).toEqual({});
    expect(failures).toHaveLength(1);
  });

  it('is still known as ours after a restart', async () => {
    const { resync, remove, restart, kernel, clock } = setup([samplePort(web([A], { nodePort: 30080 }))]);
    await resync();
    kernel.setConnections(`${NODE}:30080/TCP`, A, 1);
    await remove('shop/web:http/TCP');
    await restart();
    await clock.advance(2000);
    expect([...kernel.servers.keys()]).toEqual([`${NODE}:30080/TCP`]);
    kernel.setConnections(`${NODE}:30080/TCP`, A, 0);
    await clock.advance(2000);
    expect(kernel.dump()).toEqual({});
  });
});

describe('a mode that gives way', () => {
  it('lets open connections finish, takes nothing new, and leaves nothing', async () => {
    const { resync, retire, kernel, clock } = setup([samplePort(web([A, B], { nodePort: 30080, protocol: 'TCP' }))]);
    await resync();
    kernel.setConnections(VIP, A, 1);
    let over = false;
    const retired = retire().then(() => {
      over = true;
    });
    await clock.advance(MINUTE);
    expect(over).toBe(false);
    expect(kernel.dump()).toMatchObject({ [`server ${VIP}`]: `rr 0 0 ${A}=0`, 'address 10.96.0.1': '' });
    expect([...kernel.servers.keys()]).toEqual([VIP]);
    kernel.setConnections(VIP, A, 0);
    await clock.advance(5000);
    await retired;
    expect(kernel.dump()).toEqual({});
    expect(kernel.prepared).toBe(false);
  });

  it('takes no longer than the grace period', async () => {
    const { resync, retire, kernel, clock } = setup([samplePort(web([A]))]);
    await resync();
    kernel.setConnections(VIP, A, 1);
    const retired = retire();
    await clock.advance(16 * MINUTE);
    await retired;
    expect(kernel.dump()).toEqual({});
  });

  it('leaves what has connections when the agent ends, without waiting for the next look', async () => {
    const { resync, retire, close, kernel, clock, failures } = setup([samplePort(web([A, B]))]);
    await resync();
    kernel.setConnections(VIP, A, 1);
    const ending = new AbortController();
    const retired = retire(ending.signal);
    await clock.advance(2000);
    ending.abort();
    await retired;
    await close();
    await clock.advance(MINUTE);
    expect(kernel.dump()).toMatchObject({ [`server ${VIP}`]: `rr 0 0 ${A}=0` });
    expect(failures).toEqual([]);
  });
});

describe('the end of the agent', () => {
  it('waits for a look that is under way: the sockets are closed after it', async () => {
    const { resync, remove, close, kernel, clock, failures } = setup([
      samplePort(web([A])),
      samplePort({ name: 'x/y', clusterIp: '10.96.0.2', remote: [C] }),
    ]);
    await resync();
    kernel.setConnections(VIP, A, 1);
    kernel.setConnections('10.96.0.2:80/TCP', C, 1);
    await remove('shop/web:http/TCP');
    await remove('x/y/TCP');
    kernel.setConnections(VIP, A, 0);
    kernel.setConnections('10.96.0.2:80/TCP', C, 0);
    const list = kernel.listDestinations.bind(kernel);
    let closed: Promise<void> | undefined;
    vi.spyOn(kernel, 'listDestinations').mockImplementationOnce((key) => {
      // Longer than a slice: the look goes on in the next turn of the event loop, in which the agent ends.
      for (const started = performance.now(); performance.now() - started < 15; );
      setImmediate(() => {
        closed = close();
      });
      return list(key);
    });
    await clock.advance(1000);
    await closed;
    expect(failures).toEqual([]);
    expect(kernel.dump()).toEqual({});
    expect(() => kernel.listServers()).toThrow('EBADF');
  });

  it('leaves no counters to a scrape that comes afterwards', async () => {
    const { resync, traffic, close } = setup([samplePort(web([A]))]);
    await resync();
    expect([...traffic().keys()]).toEqual(['shop/web']);
    await close();
    expect([...traffic().keys()]).toEqual([]);
  });
});

describe('what is being drained', () => {
  it('is forgotten when somebody else removes it', async () => {
    const { resync, remove, upsert, kernel, clock, verify } = setup([
      samplePort(web([A, B])),
      samplePort({ name: 'x/y', clusterIp: '10.96.0.2', remote: [C] }),
    ]);
    await resync();
    kernel.setConnections(VIP, A, 1);
    kernel.setConnections('10.96.0.2:80/TCP', C, 1);
    await upsert(web([B]));
    await remove('x/y/TCP');
    kernel.servers.delete('10.96.0.2:80/TCP');
    kernel.servers.get(VIP)!.destinations.delete(A);
    await resync();
    await clock.advance(2000);
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${B}=1`);
    expect([...kernel.bound.keys()]).toEqual(['10.96.0.1']);
    expect(await verify()).toEqual([]);
    kernel.destinationListings = 0;
    await clock.advance(MINUTE);
    expect(kernel.destinationListings).toBe(0);
  });
});

describe('virtual servers of somebody else', () => {
  const foreign = (kernel: FakeIpvsKernel, text: string) => {
    const [ip, port] = text.split(':');
    const key = { kind: 'address', protocol: 6, address: parseIp(ip!), port: Number(port) } as const;
    kernel.servers.set(`${text}/TCP`, {
      server: { key, scheduler: 'wrr', flags: 0, persistenceSeconds: 0 },
      destinations: new Map(),
    });
  };

  it('stay, in a sync and in a clean-up, before and after a restart', async () => {
    const { resync, restart, cleanup, kernel, plan } = setup([samplePort(web([A], { nodePort: 30080 }))]);
    foreign(kernel, `${NODE}:6443`);
    foreign(kernel, '172.16.0.1:80');
    await resync();
    await restart();
    (plan.ports as Map<string, ServicePortPlan>).clear();
    await restart();
    await cleanup();
    expect([...kernel.servers.keys()]).toEqual([`${NODE}:6443/TCP`, '172.16.0.1:80/TCP']);
  });

  it('keep a Service that wants the same address and port from being programmed, and no other', async () => {
    const { kernel, resync } = setup([
      samplePort(web([A], { nodePort: 30080 })),
      samplePort({ name: 'x/y', clusterIp: '10.96.0.2', remote: [C] }),
    ]);
    foreign(kernel, `${NODE}:30080`);
    const { leftOut } = await resync();
    expect(leftOut).toMatchObject([{ key: 'shop/web:http/TCP', reason: expect.stringContaining(`${NODE}:30080/TCP`) }]);
    expect([...kernel.servers.keys()]).toEqual([`${NODE}:30080/TCP`, '10.96.0.2:80/TCP']);
    expect(kernel.dump()[`server ${NODE}:30080/TCP`]).toBe('wrr 0 0');
    expect([...kernel.bound.keys()]).toEqual(['10.96.0.2']);
  });

  it('stay on an excluded address even of kube-ipvs0', async () => {
    const { kernel, resync } = setup([], ['10.96.9.0/24']);
    kernel.bound.set('10.96.9.1', parseIp('10.96.9.1'));
    kernel.bound.set('10.96.8.1', parseIp('10.96.8.1'));
    foreign(kernel, '10.96.9.1:80');
    foreign(kernel, '10.96.8.1:80');
    await resync();
    expect([...kernel.servers.keys()]).toEqual(['10.96.9.1:80/TCP']);
    expect([...kernel.bound.keys()]).toEqual(['10.96.9.1']);
  });

  it('are taken over from a kube-proxy whose sets have them', async () => {
    const { kernel, resync } = setup([samplePort(web([A]))]);
    kernel.prepare();
    foreign(kernel, `${NODE}:30080`);
    kernel.elements.set('KUBE-NODE-PORT-TCP 30080', {
      set: 'KUBE-NODE-PORT-TCP',
      element: { type: 'bitmap:port', port: 30080 },
    });
    await resync();
    expect([...kernel.servers.keys()]).toEqual([VIP]);
    expect(kernel.members('KUBE-NODE-PORT-TCP')).toEqual([]);
  });
});

describe('a Service the kernel refuses', () => {
  const bad = { ...web([A], { nodePort: 30080 }), hint: 'nonsense' };
  const good = samplePort({ name: 'x/y', clusterIp: '10.96.0.2', remote: [C] });

  it('is left out and told about; what was made for it is taken away again, and the others are not concerned', async () => {
    const { resync, upsert, kernel, verify } = setup([good]);
    await resync();
    const before = kernel.dump();
    const { leftOut } = await upsert(bad);
    expect(leftOut).toMatchObject([
      { key: 'shop/web:http/TCP', name: 'shop/web:http', reason: expect.stringContaining('ENOENT') },
    ]);
    expect(kernel.dump()).toEqual(before);
    expect(await verify()).toEqual([]);
    expect((await resync()).leftOut).toHaveLength(1);
  });

  it('is programmed as soon as it is right', async () => {
    const { resync, upsert, kernel } = setup([good]);
    await resync();
    await upsert(bad);
    const { leftOut } = await upsert(web([A]));
    expect(leftOut).toEqual([]);
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${A}=1`);
  });

  it('keeps what it had when one of its endpoints is refused', async () => {
    const { resync, upsert, kernel } = setup([samplePort(web([A])), good]);
    await resync();
    kernel.refuse = (operation) =>
      operation.kind === 'newDestination' && operation.endpoint === B ? 'EADDRNOTAVAIL' : undefined;
    const { leftOut } = await upsert(web([A, B]));
    expect(leftOut).toHaveLength(1);
    expect([...kernel.servers.keys()]).toContain('10.96.0.2:80/TCP');
  });
});
