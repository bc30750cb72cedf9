import { describe, expect, it } from 'vitest';
import type { FakeIpvsKernel } from '../../../test/fakes/fake-ipvs-kernel.ts';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { A, B, C, ipvsBench, NODE, VIP, web } from '../../../test/fakes/ipvs-bench.ts';
import { samplePort } from '../../../test/samples/sample-plan.ts';
import { parseIp } from '../../core/index.ts';
import type { WatchNftables } from '../../nft/index.ts';
import type { ServicePortPlan } from '../index.ts';
import { NftTables } from '../rules/index.ts';

describe('a change', () => {
  it('of one endpoint is one message; of one that is replaced two', async () => {
    const { upsert, kernel, resync } = ipvsBench();
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
    const { upsert, kernel, resync } = ipvsBench();
    await resync();
    await upsert(web([A]));
    const before = kernel.destinationListings;
    await upsert(web([A, B]));
    expect(kernel.destinationListings).toBe(before);
  });
});

describe('a full sync', () => {
  it('repairs just what others changed', async () => {
    const { resync, kernel, verify } = ipvsBench([
      samplePort(web([A, B])),
      samplePort({ name: 'x/y', clusterIp: '10.96.0.2', remote: [C] }),
    ]);
    await resync();
    const before = kernel.dump();
    kernel.servers.get(VIP)!.destinations.delete(A);
    kernel.servers.delete('10.96.0.2:80/TCP');
    kernel.elements.delete('KUBE-CLUSTER-IP 10.96.0.1,tcp:80');
    kernel.bound.delete('10.96.0.1');
    expect(await verify()).toMatchObject([
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

  it('repairs by which part of addresses clients are held', async () => {
    const { resync, kernel, verify } = ipvsBench([samplePort({ ...web([A, B]), affinitySeconds: 600 })]);
    await resync();
    const before = kernel.dump();
    const held = kernel.servers.get(VIP)!;
    const persistenceMask = Uint8Array.of(255, 255, 255, 0);
    kernel.servers.set(VIP, { ...held, server: { ...held.server, persistenceMask } });
    expect(await verify()).toMatchObject([
      { difference: 'changed', theirs: [expect.stringContaining('persistence 600 s, by 255.255.255.0 of')] },
    ]);
    await resync();
    expect(kernel.dump()).toEqual(before);
    expect(await verify()).toEqual([]);
  });

  it('takes away what others set of destinations', async () => {
    const { resync, upsert, kernel, verify } = ipvsBench([samplePort(web([A, B]))]);
    await resync();
    const before = kernel.dump();
    const { destinations } = kernel.servers.get(VIP)!;
    destinations.set(A, { ...destinations.get(A)!, connectionLimit: 3 });
    destinations.set(B, { ...destinations.get(B)!, forwarding: 3 });
    expect(await verify()).toMatchObject([
      { object: `destination of ${VIP} ${A}`, theirs: [`${A} weight 1, at most 3 connections`] },
      { object: `destination of ${VIP} ${B}`, theirs: [`${B} weight 1, by direct routing in place of translation`] },
    ]);
    await resync();
    expect(await verify()).toEqual([]);
    expect(kernel.dump()).toEqual(before);
    // One that goes keeps nothing of it either.
    destinations.get(B)!.connections = 1;
    await upsert(web([A]));
    destinations.set(B, { ...destinations.get(B)!, connectionLimit: 3 });
    await resync();
    expect(destinations.get(B)).toMatchObject({ weight: 0 });
    expect(destinations.get(B)).not.toHaveProperty('connectionLimit');
  });

  it('is made when a change meets a kernel that is not as thought', async () => {
    const { resync, upsert, kernel } = ipvsBench([samplePort(web([A]))]);
    await resync();
    kernel.servers.delete(VIP);
    const { leftOut } = await upsert(web([A, B]));
    expect(leftOut).toEqual([]);
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${A}=1 ${B}=1`);
  });
});

it('names a base chain that somebody makes anew while the rules are read, not its missing jump alone', async () => {
  const nft = new FakeNftables();
  const chain = { kind: 'chain', family: 'ip', table: 'nat', name: 'OUTPUT' } as const;
  const addChain = (priority: number) => {
    const base = { type: 'nat', hook: 'output', priority } as const;
    nft.commitAsOther({ operation: 'add', object: { ...chain, base } });
  };
  nft.commit([{ operation: 'add', object: { kind: 'table', family: 'ip', name: 'nat' } }]);
  addChain(-100);
  const jump = { table: 'nat', chain: 'OUTPUT', rule: '-j KUBE-SERVICES' };
  const watch: WatchNftables = (listener) => nft.watch(listener);
  const tables = new NftTables({ family: 'IPv4', jumps: [jump], open: () => nft, watch });
  const { iptables, resync, verify } = ipvsBench([], [], tables);
  await resync();
  expect(await verify()).toEqual([]);
  iptables.delay = async (command) => {
    if (command !== 'iptables-nft-save -t nat') return;
    nft.commitAsOther({ operation: 'delete', object: chain });
    addChain(-90);
    iptables.restoreAsOther('IPv4', 'nft', '*nat\n-F OUTPUT\nCOMMIT\n');
  };
  expect(await verify()).toMatchObject([
    { object: 'base chain nat OUTPUT', difference: 'changed' },
    { object: 'jump nat OUTPUT -> KUBE-SERVICES', difference: 'missing' },
  ]);
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
    const { resync, restart, cleanup, kernel, plan } = ipvsBench([samplePort(web([A], { nodePort: 30080 }))]);
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
    const { kernel, resync } = ipvsBench([
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
    const { kernel, resync } = ipvsBench([], ['10.96.9.0/24']);
    kernel.bound.set('10.96.9.1', parseIp('10.96.9.1'));
    kernel.bound.set('10.96.8.1', parseIp('10.96.8.1'));
    foreign(kernel, '10.96.9.1:80');
    foreign(kernel, '10.96.8.1:80');
    await resync();
    expect([...kernel.servers.keys()]).toEqual(['10.96.9.1:80/TCP']);
    expect([...kernel.bound.keys()]).toEqual(['10.96.9.1']);
  });

  it('are taken over from a kube-proxy whose sets have them', async () => {
    const { kernel, resync } = ipvsBench([samplePort(web([A]))]);
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
    const { resync, upsert, kernel, verify } = ipvsBench([good]);
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
    const { resync, upsert, kernel } = ipvsBench([good]);
    await resync();
    await upsert(bad);
    const { leftOut } = await upsert(web([A]));
    expect(leftOut).toEqual([]);
    expect(kernel.dump()[`server ${VIP}`]).toBe(`rr 0 0 ${A}=1`);
  });

  it('keeps what it had when one of its endpoints is refused', async () => {
    const { resync, upsert, kernel } = ipvsBench([samplePort(web([A])), good]);
    await resync();
    kernel.refuse = (operation) =>
      operation.kind === 'newDestination' && operation.endpoint === B ? 'EADDRNOTAVAIL' : undefined;
    const { leftOut } = await upsert(web([A, B]));
    expect(leftOut).toHaveLength(1);
    expect([...kernel.servers.keys()]).toContain('10.96.0.2:80/TCP');
  });
});
