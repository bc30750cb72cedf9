import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeAll } from '../namespace.ts';
import { createFeatureWorld, elementsOf, type FeaturePod, type FeatureWorld } from './feature-world.ts';

let world: FeatureWorld;
let web: FeaturePod;
let plain: FeaturePod;

beforeAll(async () => {
  world = createFeatureWorld();
  web = await world.addPod('web', { ipMasq: true });
  plain = await world.addPod('plain');
  await world.outside.serve({ port: 80 });
  await plain.serve({ port: 80 });
});

afterAll(removeAll);

describe('ipMasq', () => {
  it.each(['IPv4', 'IPv6'] as const)('lets the node stand for the pod outside, %s', async (family) => {
    const outcome = await web.connect({ ip: world.outside.ip(family), port: 80 });
    expect(outcome).toMatchObject({ kind: 'answered', by: 'outside', source: world.nodeHost.ip(family) });
  });

  it('shows the pod to whom it is to be shown, beside pods of the same subnet that were made without', async () => {
    const { namespace: outside } = world.outside;
    const ways = [...world.nodeHost.ips].map((ip) =>
      ip.includes(':') ? ['-6', 'fd00:10:244:1::/64', ip] : ['-4', '10.244.1.0/24', ip],
    );
    for (const [family, subnet, via] of ways) outside.run('ip', family!, 'route', 'add', subnet!, 'via', via!);
    const nonMasqueradeCidrs = ['192.0.2.2/32', '2001:db8::/32'];
    const shown = await world.addPod('shown', { ipMasq: true, nonMasqueradeCidrs });
    for (const family of ['IPv4', 'IPv6'] as const) {
      const to = { ip: world.outside.ip(family), port: 80 };
      expect(await shown.connect(to)).toMatchObject({ kind: 'answered', source: shown.ip(family) });
      expect(await web.connect(to)).toMatchObject({ kind: 'answered', source: world.nodeHost.ip(family) });
    }
    // Beyond the exceptions the node stands for it as well.
    outside.run('ip', 'address', 'add', '198.51.100.1/32', 'dev', 'lo');
    world.node.namespace.run('ip', 'route', 'add', '198.51.100.1', 'via', world.outside.ip());
    expect(await shown.connect({ ip: '198.51.100.1', port: 80 })).toMatchObject({ source: world.nodeHost.ip() });
    for (const [family, subnet] of ways) outside.run('ip', family!, 'route', 'del', subnet!);
    await world.del(shown);
  });

  it.each(['IPv4', 'IPv6'] as const)('leaves what stays in the subnet alone, %s', async (family) => {
    expect(await web.connect({ ip: plain.ip(family), port: 80 })).toMatchObject({ source: web.ip(family) });
  });

  it('leaves pods alone that did not ask for it', async () => {
    const outcome = await plain.connect({ ip: world.outside.ip(), port: 80 });
    expect(outcome.kind).toBe('timeout');
  });

  it('is an element with the name of the attachment, and rules that a second pod does not write again', async () => {
    const handles = () =>
      world.node.namespace.run('nft', '-a', 'list', 'table', 'inet', 'nodeplane-cni').match(/# handle \d+/g);
    const before = handles();
    expect(elementsOf(world.table(), web.namespace.name)).toHaveLength(2);
    const second = await world.addPod('second', { ipMasq: true });
    expect(elementsOf(world.table(), second.namespace.name)).toHaveLength(2);
    expect(handles()).toEqual(before);
    await world.del(second);
    expect(elementsOf(world.table(), second.namespace.name)).toEqual([]);
  });

  it('is checked', async () => {
    const check = () => world.call('CHECK', web.namespace, { ipMasq: true, prevResult: web.result });
    expect(await check()).toMatchObject({ status: 0 });
    world.node.namespace.run('nft', 'flush', 'chain', 'inet', 'nodeplane-cni', 'postrouting');
    expect((await check()).json?.msg).toContain('Rules of nftables table "nodeplane-cni" are missing or were changed');
    world.node.namespace.run('nft', 'flush', 'map', 'inet', 'nodeplane-cni', 'masquerade-ipv4');
    expect((await check()).json?.msg).toContain('Set "masquerade-ipv4" does not have the pod\'s address');
  });

  it("is in force again after another pod's ADD, when somebody flushed the rules", async () => {
    world.node.namespace.run('nft', 'flush', 'table', 'inet', 'nodeplane-cni');
    const third = await world.addPod('third', { ipMasq: true });
    expect(await third.connect({ ip: world.outside.ip(), port: 80 })).toMatchObject({ source: '192.0.2.1' });
    expect(await web.connect({ ip: world.outside.ip('IPv6'), port: 80 })).toMatchObject({ source: '2001:db8::1' });
    await world.del(third);
  });

  it('goes over to the attachment that took the address of one that vanished without DEL', async () => {
    const { dataDir } = world.node;
    const change = { ipMasq: true, ipam: { type: 'host-local', ranges: [[{ subnet: '10.9.0.0/30' }]], dataDir } };
    const gone = await world.addPod('gone', { ...change, bridge: 'cni9' });
    world.node.namespace.run('ip', 'link', 'del', gone.result.interfaces![1]!.name);
    const heir = await world.addPod('heir', { ...change, bridge: 'cni9' });
    expect(heir.ip()).toBe(gone.ip());
    expect(elementsOf(world.table(), gone.namespace.name)).toEqual([]);
    await world.del(gone);
    expect(await heir.connect({ ip: world.outside.ip(), port: 80 })).toMatchObject({ source: '192.0.2.1' });
    await world.del(heir, change);
  });

  it('leaves no element behind after DEL, and DEL does not mind when the table is gone', async () => {
    await world.del(web, { ipMasq: true });
    expect(elementsOf(world.table(), web.namespace.name)).toEqual([]);
    const other = await world.addPod('other', { ipMasq: true });
    world.node.namespace.run('nft', 'flush', 'ruleset');
    await world.del(other, { ipMasq: true });
    await world.del(other, { ipMasq: true });
  });
});
