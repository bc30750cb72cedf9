import { execFileSync } from 'node:child_process';
import { afterAll, describe, expect, it } from 'vitest';
import { type IpFamily, parseIp } from '../../src/core/index.ts';
import { Netlink, resolveFamily } from '../../src/netlink/index.ts';
import {
  decodeDestination,
  decodeVirtualServer,
  deleteDestination,
  deleteVirtualServer,
  destinationListing,
  getIpvsTimeouts,
  IP_VS_SVC_F_SCHED_MH_FALLBACK,
  IP_VS_SVC_F_SCHED_MH_PORT,
  IPVS_GENL_NAME,
  newDestination,
  newVirtualServer,
  setDestination,
  setIpvsTimeouts,
  setVirtualServer,
  type VirtualServer,
  virtualServerListing,
} from '../../src/netlink/ipvs/index.ts';
import { NETLINK_GENERIC } from '../../src/netlink/uapi/index.ts';
import type { Plan, ServicePortPlan } from '../../src/proxy/index.ts';
import { checkIpvs, IpvsDataplane, prepareIpvs } from '../../src/proxy/ipvs/index.ts';
import { exec, inNetns, readSysctl } from '../../src/sys/index.ts';
import { CASES, execIn, useOwnLockFile } from '../lab/iptables/fixtures.ts';
import { createNamespace, removeAll, type TestNamespace } from '../lab/namespace.ts';
import { completePlan } from '../samples/complete-plan.ts';
import { randomChanges } from '../samples/random-plan.ts';
import { sampleNode, samplePlan, samplePort } from '../samples/sample-plan.ts';

useOwnLockFile();
afterAll(removeAll);

const TCP = 6;
const [VIP, VIP6, POD] = [parseIp('10.96.0.1'), parseIp('fd00:96::1'), parseIp('10.244.1.5')];
const server = (more: Partial<VirtualServer> = {}): VirtualServer => ({
  key: { kind: 'address', protocol: TCP, address: VIP, port: 80 },
  scheduler: 'rr',
  flags: 0,
  persistenceSeconds: 0,
  ...more,
});

function open(namespace: TestNamespace) {
  const netlink = inNetns(namespace.path, () => Netlink.open(NETLINK_GENERIC));
  const family = resolveFamily(netlink, IPVS_GENL_NAME);
  return {
    netlink,
    family,
    servers: () =>
      netlink.dump(virtualServerListing(family)).map((payload) => {
        const { statistics: _, ...rest } = decodeVirtualServer(payload);
        return rest;
      }),
    destinations: (key: VirtualServer['key']) =>
      netlink.dump(destinationListing(family, key)).map((payload) => decodeDestination(payload, 'IPv4')),
  };
}

describe('generic netlink of IPVS', () => {
  it('gives back every kind of virtual server as it was made, and as ipvsadm sees it', () => {
    const namespace = createNamespace('ipvs-servers');
    const { netlink, family, servers } = open(namespace);
    const all = [
      server(),
      server({ key: { kind: 'address', protocol: 17, address: VIP, port: 53 }, persistenceSeconds: 600 }),
      server({
        key: { kind: 'address', protocol: 132, address: VIP6, port: 443 },
        scheduler: 'mh',
        flags: IP_VS_SVC_F_SCHED_MH_PORT | IP_VS_SVC_F_SCHED_MH_FALLBACK,
      }),
      server({ key: { kind: 'mark', family: 'IPv6', mark: 0x6e70_0001 }, scheduler: 'lc' }),
      server({ key: { kind: 'mark', family: 'IPv4', mark: 0x6e70_0001 } }),
    ];
    netlink.execute(...all.map((each) => newVirtualServer(family, each)));
    const order = (list: readonly VirtualServer[]) => list.map((each) => JSON.stringify(each)).sort();
    expect(order(servers())).toEqual(order(all));
    const text = namespace.run('ipvsadm', '-Sn');
    for (const line of [
      '-A -t 10.96.0.1:80 -s rr',
      '-A -u 10.96.0.1:53 -s rr -p 600',
      '--sctp-service [fd00:96::1]:443 -s mh -b mh-fallback,mh-port',
      '-A -f 1852833793 -6 -s lc',
      '-A -f 1852833793 -s rr',
    ]) {
      expect(text).toContain(line);
    }
    netlink.execute(setVirtualServer(family, server({ scheduler: 'wrr', persistenceSeconds: 60 })));
    expect(servers()).toContainEqual(server({ scheduler: 'wrr', persistenceSeconds: 60 }));
    netlink.execute(...all.map(({ key }) => deleteVirtualServer(family, key)));
    expect(servers()).toEqual([]);
    netlink.close();
  });

  it('makes, changes and removes destinations, and says which of many requests were refused', () => {
    const namespace = createNamespace('ipvs-destinations');
    // A namespace without any address takes none for one that a destination may have.
    namespace.run('ip', 'link', 'set', 'lo', 'up');
    const { netlink, family, destinations } = open(namespace);
    const { key } = server();
    const at = (port: number, weight: number) => ({ address: POD, port, weight });
    const outcomes = netlink.attempt([
      newVirtualServer(family, server()),
      newVirtualServer(family, server()),
      newVirtualServer(family, server({ key: { ...key, port: 81 } as typeof key, scheduler: 'nonsense' })),
      newDestination(family, key, at(8080, 1)),
      newDestination(family, key, at(8081, 1)),
      newDestination(family, key, at(8081, 1)),
      setDestination(family, key, at(8080, 0)),
      setDestination(family, key, at(9999, 0)),
      deleteDestination(family, key, at(8081, 0)),
      newDestination(family, { ...key, port: 82 } as typeof key, at(1, 1)),
    ]);
    expect(outcomes.map((error) => error?.errnoName)).toEqual([
      ...[undefined, 'EEXIST', 'ENOENT', undefined, undefined, 'EEXIST'],
      ...[undefined, 'ENOENT', undefined, 'ESRCH'],
    ]);
    expect(destinations(key)).toEqual([
      { ...at(8080, 0), activeConnections: 0, inactiveConnections: 0, persistentConnections: 0 },
    ]);
    expect(destinations({ kind: 'mark', family: 'IPv4', mark: 9 })).toEqual([]);
    netlink.close();
  });

  it('sets the timeouts it is given and leaves the others', () => {
    const { netlink, family } = open(createNamespace('ipvs-config'));
    const before = getIpvsTimeouts(netlink, family);
    netlink.execute(setIpvsTimeouts(family, { tcp: 1234, tcpFin: 0, udp: 77 }));
    expect(getIpvsTimeouts(netlink, family)).toEqual({ tcp: 1234, tcpFin: before.tcpFin, udp: 77 });
    netlink.close();
  });
});

describe('the preflight', () => {
  it('finds nothing missing, names a scheduler that is, and leaves nothing behind', async () => {
    const look = () => execFileSync('sh', ['-c', 'ip -o link; ipvsadm -Sn'], { encoding: 'utf8' });
    const before = look();
    await checkIpvs({ scheduler: 'mh,mh-fallback', exec });
    await expect(checkIpvs({ scheduler: 'nonsense', exec })).rejects.toMatchObject({
      code: 'ERR_IPVS',
      message: expect.stringContaining('ip_vs_nonsense'),
    });
    expect(look()).toBe(before);
  });

  it('sets what IPVS needs', () => {
    const namespace = createNamespace('ipvs-sysctls');
    inNetns(namespace.path, () => {
      const settings = { strictArp: true, tcpTimeoutMs: 900_000, tcpFinTimeoutMs: 0, udpTimeoutMs: 0 };
      expect(prepareIpvs(settings)).toContain('net/ipv4/vs/conntrack=1');
      expect(prepareIpvs(settings)).toEqual([]);
      expect(readSysctl('net/ipv4/vs/conn_reuse_mode')).toBe('0');
      expect(readSysctl('net/ipv4/conf/all/arp_ignore')).toBe('1');
    });
    expect(namespace.run('ipvsadm', '-Ln', '--timeout')).toContain('900 120 300');
  });
});

function setup(family: IpFamily, variant: 'nft' | 'legacy', plan: Plan) {
  const namespace = createNamespace(`ipvs-${variant}`);
  // NodePorts want an address.
  namespace.run('ip', 'link', 'add', 'eth0', 'type', 'dummy');
  namespace.run('ip', 'address', 'add', family === 'IPv4' ? '192.168.0.7/24' : 'fd00:192:168::7/64', 'dev', 'eth0');
  const dataplane = inNetns(
    namespace.path,
    () => new IpvsDataplane({ family, variant, exec: execIn(namespace), excludeCidrs: [] }),
  );
  return { namespace, dataplane, plan };
}

describe.each(CASES)('%s, iptables-%s', (family, variant) => {
  it('makes everything there is, finds no drift, and has nothing to do again', async () => {
    const { dataplane, plan } = setup(family, variant, completePlan(family));
    const { objects, leftOut } = await dataplane.resync(plan);
    expect(leftOut).toEqual([]);
    expect(objects.servers!.total).toBeGreaterThan(50);
    expect(await dataplane.verify()).toEqual([]);
    const again = await dataplane.resync(plan);
    for (const { written } of Object.values(again.objects)) expect(written).toBe(0);
    await dataplane.close();
  });

  it('leaves a namespace as it was, foreign virtual servers included', async () => {
    const { dataplane, plan, namespace } = setup(family, variant, completePlan(family));
    const foreign = family === 'IPv4' ? ['-A -t 192.168.0.7:6443 -s wrr', '-A -f 77 -s rr'] : ['-A -f 77 -6 -s rr'];
    for (const words of foreign) namespace.run('ipvsadm', ...words.split(' '));
    const before = namespace.run('ipvsadm', '-Sn');
    await dataplane.resync(plan);
    await dataplane.cleanup();
    expect(namespace.run('ipvsadm', '-Sn')).toBe(before);
    expect(namespace.run('ip', '-o', 'link')).not.toContain('kube-ipvs0');
    expect(namespace.run('ipset', 'list', '-n')).toBe('');
    const program = `${family === 'IPv4' ? 'iptables' : 'ip6tables'}-${variant}-save`;
    expect(namespace.run(program)).not.toContain('KUBE-');
    await dataplane.close();
  });
});

describe('changes', () => {
  it('lead the kernel to where a full sync would, step by step', async () => {
    const ports = new Map<string, ServicePortPlan>();
    const node = sampleNode({ nodeIp: parseIp('192.168.0.7') });
    const plan = { family: 'IPv4', node, ports } as const;
    const { dataplane } = setup('IPv4', 'nft', plan);
    await dataplane.resync(plan);
    for (const delta of randomChanges('IPv4', 60, ports)) {
      const { leftOut } = await dataplane.sync(plan, delta);
      expect(leftOut).toEqual([]);
    }
    expect(await dataplane.verify()).toEqual([]);
    const again = await dataplane.resync(plan);
    for (const { written } of Object.values(again.objects)) expect(written).toBe(0);
    await dataplane.close();
  });

  it('that the kernel refuses leave their Service out and no other', async () => {
    const bad = samplePort({
      name: 'x/bad',
      clusterIp: '10.96.0.9',
      remote: ['10.244.9.9:80'],
      hint: 'nonsense',
    });
    // An address nobody can have.
    const worse = samplePort({ name: 'x/worse', clusterIp: '10.96.0.8', remote: ['255.255.255.255:80'] });
    const good = samplePort({ name: 'x/good', clusterIp: '10.96.0.7', remote: ['10.244.9.9:80'] });
    const { dataplane, plan, namespace } = setup('IPv4', 'nft', samplePlan('IPv4', sampleNode(), [bad, worse, good]));
    const { leftOut } = await dataplane.resync(plan);
    expect(leftOut!.map(({ name }) => name)).toEqual(['x/bad', 'x/worse']);
    const servers = namespace.run('ipvsadm', '-Sn');
    expect(servers).toContain('-A -t 10.96.0.7:80 -s rr');
    expect(servers).not.toContain('10.96.0.9');
    expect(await dataplane.verify()).toEqual([]);
    await dataplane.close();
  });
});
