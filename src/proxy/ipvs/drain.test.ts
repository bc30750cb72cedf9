import { describe, expect, it, vi } from 'vitest';
import { A, B, C, ipvsBench, NODE, VIP, web } from '../../../test/fakes/ipvs-bench.ts';
import { samplePort } from '../../../test/samples/sample-plan.ts';

const MINUTE = 60_000;

describe('an endpoint that goes', () => {
  it('gets weight 0 and stays until its connections are over', async () => {
    const { resync, upsert, kernel, clock } = ipvsBench([samplePort(web([A, B]))]);
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
    const { resync, upsert, kernel, clock } = ipvsBench([samplePort(web([A, B]))]);
    await resync();
    kernel.setConnections(VIP, A, 3);
    await upsert(web([B]));
    await clock.advance(14 * MINUTE);
    expect(kernel.servers.get(VIP)!.destinations.has(A)).toBe(true);
    await clock.advance(2 * MINUTE);
    expect(kernel.servers.get(VIP)!.destinations.has(A)).toBe(false);
  });

  it('is taken back as it is when it is wanted again', async () => {
    const { resync, upsert, kernel, clock } = ipvsBench([samplePort(web([A, B]))]);
    await resync();
    kernel.setConnections(VIP, A, 3);
    await upsert(web([B]));
    await upsert(web([A, B]));
    expect(kernel.operations.map(({ kind }) => kind)).toEqual(['setDestination']);
    await clock.advance(20 * MINUTE);
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${A}=1 ${B}=1`);
  });

  it('goes on being drained after a restart', async () => {
    const { resync, upsert, restart, kernel, clock } = ipvsBench([samplePort(web([A, B]))]);
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
    const { resync, upsert, kernel } = ipvsBench([samplePort(dns([A, B]))]);
    await resync();
    kernel.setConnections('10.96.0.1:80/UDP', A, 1);
    await upsert(dns([B]));
    expect(kernel.operations.map(({ kind }) => kind)).toEqual(['deleteDestination']);
  });
});

describe('a Service that goes', () => {
  it('keeps virtual server and address until its connections are over, and turns new ones away', async () => {
    const { resync, remove, kernel, clock, verify } = ipvsBench([samplePort(web([A]))]);
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
    const { resync, remove, kernel, clock, failures } = ipvsBench([samplePort(web([A]))]);
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

  it('is brought in line again when the kernel refuses to let a destination go, which is told', async () => {
    const { upsert, resync, kernel, clock, failures } = ipvsBench([samplePort(web([A, B]))]);
    await resync();
    await upsert(web([B]));
    kernel.refuse = ({ kind }) => (kind === 'deleteDestination' ? 'EADDRNOTAVAIL' : undefined);
    await clock.advance(1000);
    expect(failures).toMatchObject([{ errnoName: 'EADDRNOTAVAIL', operation: 'deleteDestination' }]);
    kernel.refuse = () => undefined;
    // A full sync, because nobody knows what the kernel holds.
    await upsert(web([B, C]));
    await clock.advance(1000);
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${B}=1 ${C}=1`);
    expect(failures).toHaveLength(1);
  });

  it('is still known as ours after a restart', async () => {
    const { resync, remove, restart, kernel, clock } = ipvsBench([samplePort(web([A], { nodePort: 30080 }))]);
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
    const { resync, retire, kernel, clock } = ipvsBench([
      samplePort(web([A, B], { nodePort: 30080, protocol: 'TCP' })),
    ]);
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
    const { resync, retire, kernel, clock } = ipvsBench([samplePort(web([A]))]);
    await resync();
    kernel.setConnections(VIP, A, 1);
    const retired = retire();
    await clock.advance(16 * MINUTE);
    await retired;
    expect(kernel.dump()).toEqual({});
  });

  it('leaves what has connections when the agent ends, without waiting for the next look', async () => {
    const { resync, retire, close, kernel, clock, failures } = ipvsBench([samplePort(web([A, B]))]);
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
    const { resync, remove, close, kernel, clock, failures } = ipvsBench([
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
    const { resync, traffic, close } = ipvsBench([samplePort(web([A]))]);
    await resync();
    expect([...traffic().keys()]).toHaveLength(1);
    await close();
    expect([...traffic().keys()]).toEqual([]);
  });
});

describe('what is being drained', () => {
  it('is forgotten when somebody else removes it', async () => {
    const { resync, remove, upsert, kernel, clock, verify } = ipvsBench([
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
