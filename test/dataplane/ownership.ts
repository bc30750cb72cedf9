import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IpFamily } from '../../src/core/index.ts';
import type { ServiceCIDR, ServiceSpec } from '../../src/kube/index.ts';
import { makeService, makeSlice } from '../fakes/service-objects.ts';
import { type Agent, addRoute, createLab, type Host, type LabNode, type Pod, removeAll, tally } from '../lab/lab.ts';
import { manifestOf, nodeObject, saveManifest } from '../samples/manifests.ts';
import { describeMode, type ModeName } from './modes.ts';
import { FAMILIES } from './world.ts';

// One address, several Services: who gets the packets, and what happens when that changes. All Services have port 80.

const SILENCE_MS = 400;
const ROUND = 12;

/** A Service in few words. Each address is one of each family. */
interface Wish {
  readonly clusterIP: Both;
  readonly externalIPs?: readonly Both[];
  readonly vip?: Both;
  readonly nodePort?: number;
  readonly sourceRanges?: readonly string[];
  readonly year?: number;
  /** @default none */
  readonly pod?: 'web-1' | 'web-2';
}

type Both = Readonly<Record<IpFamily, string>>;

const both = (v4: string, v6: string): Both => ({ IPv4: v4, IPv6: v6 });
const clusterIp = (n: number) => both(`10.96.0.${n}`, `fd00:96::${n}`);
const external = (n: number) => both(`203.0.113.${n}`, `2001:db8:203::${n}`);

const VICTIM = clusterIp(10);
const EMPTY = clusterIp(11);
const RESTRICTED = external(20);
const HANDED_ON = external(30);
/** On the node's interface with the mask of its network, as PureLB and keepalived put what they deliver. */
const FLOATING = both('192.168.50.77', 'fd00:50::77');
const IN_CLUSTER_RANGE = both('10.97.0.1', 'fd00:97::1');
const NODE_PORT = 30_080;

/** What is in force all the time; the names of thieves sort first. */
const STANDING: Readonly<Record<string, Wish>> = {
  'z-victim': { clusterIP: VICTIM, pod: 'web-1' },
  'a-thief': { clusterIP: clusterIp(1), externalIPs: [VICTIM, EMPTY, RESTRICTED], pod: 'web-2', year: 2001 },
  'z-empty': { clusterIP: EMPTY },
  'z-lb': {
    clusterIP: clusterIp(12),
    vip: RESTRICTED,
    externalIPs: [RESTRICTED],
    sourceRanges: ['192.168.50.101/32', 'fd00:50::101/128'],
    pod: 'web-1',
  },
};

/** Checks one mode in both families. */
export function testOwnership(mode: ModeName): void {
  describeMode(mode, (flags) => {
    let node: LabNode;
    let pods: Readonly<Record<'web-1' | 'web-2', Pod>>;
    let client: Pod;
    let outside: Host;
    let stranger: Host;
    let manifests: string;
    let agent: Agent;

    const put = (wishes: Readonly<Record<string, Wish>>): void => {
      const services = Object.entries({ ...STANDING, ...wishes }).flatMap(([name, wish]) => objectsOf(name, wish));
      saveManifest(manifests, 'all.yaml', manifestOf(nodeObject(node), SERVICE_CIDR, ...API_SLICES, ...services));
    };
    const objectsOf = (name: string, wish: Wish) => {
      const { clusterIP, externalIPs = [], vip, nodePort, sourceRanges, year, pod } = wish;
      const spec: ServiceSpec = {
        type: vip ? 'LoadBalancer' : 'NodePort',
        clusterIP: clusterIP.IPv4,
        clusterIPs: Object.values(clusterIP),
        externalIPs: externalIPs.flatMap((ips) => Object.values(ips)),
        ...(sourceRanges && { loadBalancerSourceRanges: sourceRanges }),
        ports: [{ port: 80, ...(nodePort && { nodePort }) }],
      };
      const service = makeService(`default/${name}`, spec, {
        ...(year && { creationTimestamp: `${year}-01-01T00:00:00Z` }),
        ...(vip && { vips: Object.values(vip) }),
      });
      const endpoints = (family: IpFamily) => (pod ? [{ addresses: [pods[pod].ip(family)], nodeName: 'node-1' }] : []);
      const slices = FAMILIES.map((addressType) =>
        makeSlice(`default/${name}`, endpoints(addressType), { addressType }),
      );
      return [service, ...slices];
    };
    /** Who answers, or how it fails. */
    const answering = async (from: Host, ip: string, port = 80, timeoutMs = 2_000) => {
      const { answers, failures } = tally(await from.connectMany({ ip, port }, ROUND, { timeoutMs }));
      return [...Object.keys(answers), ...Object.keys(failures)].sort();
    };

    beforeAll(async () => {
      const lab = createLab();
      node = lab.addNode({ name: 'node-1' });
      pods = { 'web-1': node.addPod('web-1'), 'web-2': node.addPod('web-2') };
      client = node.addPod('client');
      outside = lab.addClient('outside', { ips: ['192.168.50.101', 'fd00:50::101'] });
      stranger = lab.addClient('stranger', { ips: ['192.168.50.102', 'fd00:50::102'] });
      for (const pod of Object.values(pods)) await pod.serve({ port: 8080 });
      await node.serve({ port: 80 });
      for (const host of [outside, stranger]) {
        for (const range of ['10.96.0.0/15', 'fd00:96::/64', 'fd00:97::/64', '203.0.113.0/24', '2001:db8:203::/64']) {
          addRoute(host, range, node);
        }
        for (const cidr of node.podCidrs) addRoute(host, cidr, node);
      }
      node.namespace.run('sysctl', '-qw', 'net.ipv4.icmp_ratelimit=0', 'net.ipv6.icmp.ratelimit=0');
      node.namespace.run('ip', 'address', 'add', `${FLOATING.IPv4}/24`, 'dev', 'eth0');
      node.namespace.run('ip', 'address', 'add', `${FLOATING.IPv6}/64`, 'dev', 'eth0', 'nodad');
      manifests = join(lab.folder, 'manifests');
      mkdirSync(manifests);
      put({
        'a-floating': { clusterIP: clusterIp(17), vip: FLOATING, pod: 'web-1' },
        'a-refused': {
          clusterIP: clusterIp(13),
          externalIPs: [both(node.ip('IPv4'), node.ip('IPv6')), IN_CLUSTER_RANGE, API_SERVER],
          pod: 'web-2',
        },
        'a-refused-vip': { clusterIP: clusterIp(14), vip: both(node.ip('IPv4'), node.ip('IPv6')), pod: 'web-2' },
        'c-owner': {
          clusterIP: clusterIp(15),
          externalIPs: [HANDED_ON],
          nodePort: NODE_PORT,
          pod: 'web-1',
          year: 2020,
        },
        'b-next': { clusterIP: clusterIp(16), externalIPs: [HANDED_ON], nodePort: NODE_PORT, pod: 'web-2', year: 2021 },
      });
      agent = await node.startAgent({
        manifests,
        flags: ['--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48', ...flags],
      });
    });
    afterAll(async () => {
      expect(await agent.stop()).toBe(0);
      removeAll();
    });

    describe.each(FAMILIES)('%s', (family) => {
      it('a ClusterIP stays with its Service whoever has it as external IP', async () => {
        for (const from of [client, outside, node]) expect(await answering(from, VICTIM[family])).toEqual(['web-1']);
      });

      it('and is refused while that has no endpoints', async () => {
        for (const from of [client, outside]) expect(await answering(from, EMPTY[family])).toEqual(['refused']);
      });

      it('source ranges hold for a VIP that is external IP too, of its own Service and of another', async () => {
        expect(await answering(outside, RESTRICTED[family])).toEqual(['web-1']);
        expect(await answering(stranger, RESTRICTED[family], 80, SILENCE_MS)).toEqual(['timeout']);
      });

      it('the node keeps its own address, as external IP and as VIP', async () => {
        for (const from of [client, outside]) expect(await answering(from, node.ip(family))).toEqual(['node-1']);
      });

      it('a VIP is its Service’s also where it is on an interface of the node, with a network', async () => {
        for (const from of [client, outside]) expect(await answering(from, FLOATING[family])).toEqual(['web-1']);
      });

      it('the older Service has what both want', async () => {
        expect(await answering(outside, HANDED_ON[family])).toEqual(['web-1']);
        expect(await answering(outside, node.ip(family), NODE_PORT)).toEqual(['web-1']);
      });
    });

    it('nothing that is refused is an address of the node', () => {
      const addresses = node.namespace.run('ip', '-o', 'address');
      const own = addresses.split('\n').filter((line) => line.includes('kube-ipvs0'));
      const refused = [IN_CLUSTER_RANGE, API_SERVER, both(node.ip('IPv4'), node.ip('IPv6'))];
      for (const ip of refused.flatMap((one) => Object.values(one))) {
        expect(own.filter((line) => line.includes(` ${ip}/`))).toEqual([]);
      }
    });

    it('whoever is not served is named, with the reason', async () => {
      const text = await agent.metrics();
      for (const family of FAMILIES) {
        expect(text).toContain(`nodeplane_services_restricted{ip_family="${family}",reason="taken"} 2`);
        expect(text).toContain(`nodeplane_services_restricted{ip_family="${family}",reason="refused"} 2`);
      }
      const warnings = agent.logs().filter(({ msg }) => msg === 'Parts of a Service cannot be used');
      const told = JSON.stringify(warnings);
      expect(told).toContain('10.96.0.10:80/TCP is the ClusterIP of Service \\"default/z-victim\\"');
      expect(told).toContain('spec.externalIPs has 10.97.0.1, which is within the range of ClusterIPs 10.97.0.0/16');
      expect(told).toContain("which is the API server's address");
      expect(told).toContain(`status.loadBalancer.ingress has ${node.ip()}, which is an address of this node`);
    });

    it('a destination is handed on in one commit, and back', async () => {
      const next = { clusterIP: clusterIp(16), externalIPs: [HANDED_ON], nodePort: NODE_PORT, year: 2021 };
      const owner = { clusterIP: clusterIp(15), pod: 'web-1', year: 2020 } as const;
      const whole = { ...owner, externalIPs: [HANDED_ON], nodePort: NODE_PORT };
      const steps: [Readonly<Record<string, Wish>>, string][] = [
        // It gives up its addresses, is there again, goes, is there again.
        [{ 'c-owner': owner, 'b-next': { ...next, pod: 'web-2' } }, 'web-2'],
        [{ 'c-owner': whole, 'b-next': { ...next, pod: 'web-2' } }, 'web-1'],
        [{ 'b-next': { ...next, pod: 'web-2' } }, 'web-2'],
        [{ 'c-owner': whole, 'b-next': { ...next, pod: 'web-2' } }, 'web-1'],
      ];
      for (const [wishes, answer] of steps) {
        put(wishes);
        for (const family of FAMILIES) {
          await expect.poll(() => answering(outside, HANDED_ON[family])).toEqual([answer]);
          await expect.poll(() => answering(outside, node.ip(family), NODE_PORT)).toEqual([answer]);
        }
      }
      const failures = agent.logs().filter(({ level }) => level === 'error' || Number(level) >= 50);
      expect(failures).toEqual([]);
    });
  });
}

const API_SERVER = both('192.168.50.250', 'fd00:50::250');

const SERVICE_CIDR: ServiceCIDR = {
  kind: 'ServiceCIDR',
  metadata: { name: 'kubernetes', namespace: '' },
  // Not the range the ClusterIPs here are from: only their owners keep others from them.
  spec: { cidrs: ['10.97.0.0/16', 'fd00:97::/64'] },
};

/** What the API server writes down about itself. */
const API_SLICES = FAMILIES.map((addressType) =>
  makeSlice('default/kubernetes', [API_SERVER[addressType]], { addressType, ports: [{ name: 'https', port: 6443 }] }),
);
