import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { SUPPORTED_VERSIONS } from '../../../src/cni/index.ts';
import { createFolder, createNamespace, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { createNode, IPV4, IPV6, linksOf, reaches, routesOf } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

const linkOf = (namespace: Parameters<typeof linksOf>[0], name: string) =>
  linksOf(namespace).find(({ ifname }) => ifname === name);

describe('ADD', () => {
  it.each([
    ['IPv4', [[IPV4]], ['10.244.1.2/24'], ['10.244.1.1/24']],
    ['IPv6', [[IPV6]], ['fd00:10:244:1::2/64'], ['fd00:10:244:1::1/64']],
    [
      'dual stack',
      [[IPV4], [IPV6]],
      ['10.244.1.2/24', 'fd00:10:244:1::2/64'],
      ['10.244.1.1/24', 'fd00:10:244:1::1/64'],
    ],
  ])('attaches a pod with %s addresses', async (_, ranges, addresses, gateways) => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    const config = node.config({}, { ranges });
    const result = await node.add(pod, { config });
    await node.add(other, { config });

    expect(result.ips).toEqual(
      addresses.map((address, i) => ({ interface: 2, address, gateway: gateways[i]!.replace(/\/.*/, '') })),
    );
    const [bridge, hostEnd, podEnd] = result.interfaces!;
    const host = linkOf(node.namespace, hostEnd!.name)!;
    const eth0 = linkOf(pod, 'eth0')!;
    expect(linkOf(node.namespace, 'cni0')).toMatchObject({
      address: bridge!.mac,
      mtu: bridge!.mtu,
      operstate: 'UP',
      addresses: gateways,
    });
    expect(host).toMatchObject({ address: hostEnd!.mac, mtu: hostEnd!.mtu, operstate: 'UP', master: 'cni0' });
    expect(host.ifalias).toBe(`net/${pod.name}/eth0`);
    expect(eth0).toMatchObject({ address: podEnd!.mac, mtu: podEnd!.mtu, operstate: 'UP', addresses });
    expect(podEnd!.sandbox).toBe(pod.path);
    expect(linkOf(pod, 'lo')!.flags).toContain('UP');
    expect(routesOf(pod).filter((route) => route.includes('default'))).toEqual(
      gateways.map(
        (gateway) => `${gateway.includes(':') ? '-6' : '-4'} default via ${gateway.replace(/\/.*/, '')} dev eth0`,
      ),
    );
    expect(result.routes!.map(({ gw }) => gw)).toEqual(gateways.map((gateway) => gateway.replace(/\/.*/, '')));

    const neighbours = linkOf(other, 'eth0')!.addresses.map((address) => address.replace(/\/.*/, ''));
    for (const ip of [...neighbours, ...gateways.map((gateway) => gateway.replace(/\/.*/, ''))]) {
      expect(reaches(pod, ip), ip).toBe(true);
    }
    expect(node.reservations().sort()).toEqual(
      [...addresses.map((address) => address.replace(/\/.*/, '')), ...neighbours].sort(),
    );
  });

  it.each(['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'])('answers in the form of version %s', async (cniVersion) => {
    const node = createNode();
    const pod = createNamespace('pod');
    const config = node.config({ cniVersion });
    const result = await node.add(pod, { config });
    expect(result.cniVersion).toBe(cniVersion);
    expect(result.interfaces!.map(({ name }) => name)).toEqual(['cni0', expect.stringMatching(/^veth/), 'eth0']);
    expect(result.ips!.map(({ version }) => version)).toEqual(cniVersion < '1' ? ['4', '6'] : [undefined, undefined]);
    expect(result.interfaces!.map(({ mtu }) => mtu)).toEqual(
      cniVersion === '1.1.0' ? [1500, 1500, 1500] : [undefined, undefined, undefined],
    );
    expect('dns' in result).toBe(cniVersion < '1');
    await node.del(pod, { config });
    expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
  });

  it('makes links of one queue, however many processors there are', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    await node.add(pod);
    const queues = { num_tx_queues: 1, num_rx_queues: 1 };
    const details = (namespace: typeof pod) =>
      JSON.parse(namespace.run('ip', '-d', '-j', 'link', 'show', 'type', 'veth'));
    expect(details(node.namespace)).toEqual([expect.objectContaining({ ...queues, master: 'cni0', operstate: 'UP' })]);
    expect(details(pod)).toEqual([expect.objectContaining({ ...queues, ifname: 'eth0', operstate: 'UP' })]);
  });

  it('gives a new bridge a link-local address that is usable at once, so that pods can be reached from afar', async () => {
    const node = createNode();
    await node.add(createNamespace('pod'));
    // The kernel makes it once it hears, in its own time, that the bridge has a carrier.
    let linkLocal = '';
    const isThere = () => {
      linkLocal = node.namespace.run('ip', '-6', 'address', 'show', 'dev', 'cni0', 'scope', 'link');
      return linkLocal.includes('inet6 fe80:');
    };
    await expect.poll(isThere, { interval: 1 }).toBe(true);
    expect(linkLocal).not.toContain('tentative');
  });

  it('makes the node forward, and deaf to router advertisements of pods', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    node.namespace.run('sysctl', '-qw', 'net.ipv4.ip_forward=0', 'net.ipv6.conf.all.forwarding=0');
    pod.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1', 'net.ipv6.conf.default.disable_ipv6=1');
    const result = await node.add(pod);
    const hostEnd = result.interfaces![1]!.name;
    const read = (namespace: typeof pod, name: string) => namespace.run('cat', `/proc/sys/net/${name}`).trim();
    expect(read(node.namespace, 'ipv4/ip_forward')).toBe('1');
    expect(read(node.namespace, 'ipv6/conf/all/forwarding')).toBe('1');
    expect(read(node.namespace, 'ipv6/conf/cni0/accept_ra')).toBe('0');
    expect(read(node.namespace, `ipv6/conf/${hostEnd}/accept_ra`)).toBe('0');
    expect(read(pod, 'ipv6/conf/eth0/accept_ra')).toBe('0');
    expect(read(pod, 'ipv6/conf/eth0/disable_ipv6')).toBe('0');
    expect(read(pod, 'ipv6/conf/lo/disable_ipv6')).toBe('0');
    // Usable at once: no duplicate address detection to wait for.
    expect(pod.run('ip', '-6', 'address', 'show', 'dev', 'eth0', 'scope', 'global')).toMatch(/nodad/);
    expect(pod.run('ip', '-6', 'address', 'show', 'dev', 'eth0', 'scope', 'global', 'tentative')).toBe('');
  });

  it('keeps an uplink that lives on router advertisements listening to them', async () => {
    const node = createNode();
    const uplink = createNamespace('uplink');
    node.namespace.run('sysctl', '-qw', 'net.ipv6.conf.all.forwarding=0');
    node.namespace.run('ip', 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', 'up1', 'netns', uplink.name);
    node.namespace.run('sysctl', '-qw', 'net.ipv6.conf.up0.accept_ra=1');
    await node.add(createNamespace('pod'));
    expect(node.namespace.run('cat', '/proc/sys/net/ipv6/conf/up0/accept_ra').trim()).toBe('2');
  });

  it('sets the hairpin flag unless told not to', async () => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    const withHairpin = await node.add(pod);
    const without = await node.add(other, { config: node.config({ hairpinMode: false }) });
    const hairpinOf = (name: string) =>
      JSON.parse(node.namespace.run('bridge', '-j', '-d', 'link', 'show', 'dev', name))[0].hairpin;
    expect(hairpinOf(withHairpin.interfaces![1]!.name)).toBe(true);
    expect(hairpinOf(without.interfaces![1]!.name)).toBe(false);
  });

  it('gives bridge and both ends the MTU, and keeps the MAC of the bridge while pods come and go', async () => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    const config = node.config({ mtu: 1400, bridge: 'br7' });
    const result = await node.add(pod, { config });
    expect(result.interfaces!.map(({ mtu }) => mtu)).toEqual([1400, 1400, 1400]);
    const bridge = linkOf(node.namespace, 'br7')!;
    expect(bridge).toMatchObject({ mtu: 1400, address: '0a:58:0a:f4:01:01' });
    expect(linkOf(pod, 'eth0')).toMatchObject({ mtu: 1400, address: '0a:58:0a:f4:01:02' });
    await node.add(other, { config });
    await node.del(pod, { config });
    await node.del(other, { config });
    expect(linkOf(node.namespace, 'br7')).toMatchObject({
      mtu: 1400,
      address: bridge.address,
      addresses: bridge.addresses,
    });
  });

  it('adds a second interface and leaves the default route with the first', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    await node.add(pod);
    const routes = routesOf(pod).filter((route) => route.includes('default'));
    const second = await node.add(pod, {
      ifname: 'net1',
      config: node.config({ bridge: 'cni1', name: 'second' }, { ranges: [[{ subnet: '10.9.0.0/24' }]] }),
    });
    expect(second.ips!.map(({ address }) => address)).toEqual(['10.9.0.2/24']);
    expect(routesOf(pod).filter((route) => route.includes('default'))).toEqual(routes);
    expect(reaches(pod, '10.9.0.1')).toBe(true);
  });

  it('gives an interface without addresses when the network has no IPAM', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const result = await node.add(pod, {
      config: { cniVersion: '1.0.0', name: 'net', dataDir: node.dataDir, ipam: {} },
    });
    expect(result).toMatchObject({ ips: [], routes: [] });
    expect(linkOf(pod, 'eth0')).toMatchObject({ operstate: 'UP', addresses: [] });
    expect(linkOf(node.namespace, 'cni0')).toMatchObject({ operstate: 'UP', addresses: [] });
    await node.del(pod, { config: { cniVersion: '1.0.0', name: 'net', dataDir: node.dataDir, ipam: {} } });
    expect(linkOf(pod, 'eth0')).toBeUndefined();
  });

  it('is no gateway when told not to be', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const result = await node.add(pod, { config: node.config({ isGateway: false }) });
    expect(result.routes).toEqual([]);
    expect(linkOf(node.namespace, 'cni0')!.addresses).toEqual([]);
    expect(routesOf(pod).filter((route) => route.includes('default'))).toEqual([]);
  });

  it('passes on name servers from the configuration, or from resolvConf', async () => {
    const node = createNode();
    const file = join(createFolder('resolv').path, 'resolv.conf');
    writeFileSync(file, 'nameserver 10.96.0.10\nsearch a b\n');
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    expect((await node.add(pod, { config: node.config({}, { resolvConf: file }) })).dns).toEqual({
      nameservers: ['10.96.0.10'],
      search: ['a', 'b'],
    });
    const config = node.config({ dns: { nameservers: ['10.96.0.11'] } }, { resolvConf: file });
    expect((await node.add(other, { config })).dns).toEqual({ nameservers: ['10.96.0.11'] });
  });

  it('uses the addresses of an attempt that died half-way again', async () => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    const env = { NODEPLANE_CNI_FAILPOINT: 'reserved' };
    const call = { command: 'ADD', containerId: pod.name, netns: pod, config: node.config() };
    expect((await callPlugin(node.namespace, { ...call, env })).status).toBeNull();
    const reserved = node.reservations().sort();
    expect(reserved).toEqual(['10.244.1.2', 'fd00:10:244:1::2']);
    await node.add(other);
    const result = await node.add(pod);
    expect(result.ips!.map(({ address }) => address.replace(/\/.*/, '')).sort()).toEqual(reserved);
    await node.del(pod);
    await node.del(other);
    expect(node.reservations()).toEqual([]);
  });

  it('never hands out an address of the bridge', async () => {
    const node = createNode();
    node.namespace.run('ip', 'link', 'add', 'cni0', 'type', 'bridge');
    node.namespace.run('ip', 'address', 'add', 'fd00:10:244:1::2/64', 'dev', 'cni0');
    const config = node.config({ forceAddress: false }, { ranges: [[{ ...IPV6, gateway: 'fd00:10:244:1::2' }]] });
    const result = await node.add(createNamespace('pod'), { config });
    expect(result.ips![0]!.address).toBe('fd00:10:244:1::1/64');
  });

  it('replaces the address of a changed range when told to', async () => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    await node.add(pod, { config: node.config({}, { ranges: [[{ subnet: '10.244.9.0/24' }]] }) });
    await node.add(other, { config: node.config({ forceAddress: true }) });
    expect(linkOf(node.namespace, 'cni0')!.addresses).toEqual(['10.244.1.1/24', 'fd00:10:244:1::1/64']);
    expect(reaches(other, '10.244.1.1')).toBe(true);
  });

  it('accepts its own namespace when the override says so', async () => {
    const node = createNode();
    const config = node.config({ isGateway: false });
    const result = await node.add(node.namespace, { config, env: { CNI_NETNS_OVERRIDE: '1' } });
    expect(linkOf(node.namespace, 'eth0')!.addresses).toEqual(result.ips!.map(({ address }) => address));
  });
});

it('runs from any folder and through a symbolic link', async () => {
  const node = createNode();
  const pod = createNamespace('pod');
  const folder = createFolder('link').path;
  symlinkSync(builtProgram('nodeplane-cni'), join(folder, 'bridge'));
  await node.add(pod, { program: join(folder, 'bridge'), cwd: '/' });
  await node.del(pod, { program: './bridge', cwd: folder });
  expect(node.reservations()).toEqual([]);
  const { json } = await callPlugin(node.namespace, { command: 'VERSION', config: '', cwd: folder });
  expect(json).toEqual({ cniVersion: '1.1.0', supportedVersions: SUPPORTED_VERSIONS });
});
