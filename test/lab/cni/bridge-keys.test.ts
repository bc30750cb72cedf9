import { afterEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { createNode, linksOf, reaches } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

const portOf = (node: TestNamespace, name: string) =>
  JSON.parse(node.run('bridge', '-j', '-d', 'link', 'show', 'dev', name))[0];

describe('the key', () => {
  it('portIsolation keeps pods from each other and lets them reach the gateway', async () => {
    const node = createNode();
    const pods = [createNamespace('pod'), createNamespace('other')] as const;
    const config = node.config({ portIsolation: true });
    const [result] = [await node.add(pods[0], { config }), await node.add(pods[1], { config })];
    expect(portOf(node.namespace, result.interfaces![1]!.name).isolated).toBe(true);
    expect(reaches(pods[0], '10.244.1.1')).toBe(true);
    expect(reaches(pods[0], '10.244.1.3')).toBe(false);
  });

  it('promiscMode makes the bridge promiscuous and hairpin mode stay off', async () => {
    const node = createNode();
    const result = await node.add(createNamespace('pod'), { config: node.config({ promiscMode: true }) });
    expect(linksOf(node.namespace).find(({ ifname }) => ifname === 'cni0')!.flags).toContain('PROMISC');
    expect(portOf(node.namespace, result.interfaces![1]!.name).hairpin).toBe(false);
  });

  it('enabledad waits until IPv6 addresses are usable, and refuses one that somebody has', async () => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    const config = node.config({ enabledad: true });
    await node.add(pod, { config });
    const address = pod.run('ip', '-6', 'address', 'show', 'dev', 'eth0', 'scope', 'global');
    expect(address).toContain('fd00:10:244:1::2/64');
    expect(address).not.toMatch(/nodad|tentative/);
    pod.run('ip', '-6', 'address', 'add', 'fd00:10:244:1::3/64', 'dev', 'eth0', 'nodad');
    const { json } = await callPlugin(node.namespace, { command: 'ADD', netns: other, config });
    expect(json).toMatchObject({ code: 105, msg: expect.stringContaining('fd00:10:244:1::3') });
    expect(linksOf(other).map(({ ifname }) => ifname)).toEqual(['lo']);
  });

  it('disableContainerInterface leaves the pod’s end down', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const config = { cniVersion: '1.0.0', name: 'net', dataDir: node.dataDir, disableContainerInterface: true };
    const prevResult = await node.add(pod, { config });
    expect(linksOf(pod).find(({ ifname }) => ifname === 'eth0')!.flags).not.toContain('UP');
    const check = { command: 'CHECK', containerId: pod.name, netns: pod, config: { ...config, prevResult } };
    expect(await callPlugin(node.namespace, check)).toMatchObject({ status: 0 });
    await node.del(pod, { config });
  });

  it('vlan makes the pod’s port a member; a kernel whose bridge knows no VLANs refuses, and nothing stays', async () => {
    const node = createNode();
    const knowsVlans = (() => {
      try {
        node.namespace.run('ip', 'link', 'add', 'probe', 'type', 'bridge', 'vlan_filtering', '1');
        node.namespace.run('ip', 'link', 'del', 'probe');
        return true;
      } catch {
        return false;
      }
    })();
    const config = node.config({ isGateway: false, vlan: 100, vlanTrunk: [{ minID: 200, maxID: 202 }] });
    const pod = createNamespace('pod');
    const { status, json } = await callPlugin(node.namespace, { command: 'ADD', netns: pod, config });
    if (knowsVlans) {
      const vlans = node.namespace.run('bridge', 'vlan', 'show', 'dev', json!.interfaces![1]!.name);
      expect(vlans.match(/\d+( PVID.*)?$/gm)).toEqual(['100 PVID Egress Untagged', '200', '201', '202']);
      return;
    }
    expect(status).toBe(1);
    expect(json).toMatchObject({
      code: 105,
      msg: expect.stringContaining('this kernel lacks CONFIG_BRIDGE_VLAN_FILTERING'),
      details: expect.stringContaining('bridge "cni0": operation not supported'),
    });
    expect(linksOf(node.namespace).map(({ ifname }) => ifname)).toEqual(['lo']);
    expect(node.reservations()).toEqual([]);
  });
});

describe('a runtime', () => {
  it('chooses MAC and addresses, by any of the three ways', async () => {
    const node = createNode();
    const [pod, other, third] = [createNamespace('pod'), createNamespace('other'), createNamespace('third')];
    const first = await node.add(pod, {
      config: node.config({
        runtimeConfig: { Mac: '0a:00:00:00:00:42', IPs: ['10.244.1.66/24', 'fd00:10:244:1::66'] },
      }),
    });
    expect(first.ips!.map(({ address }) => address)).toEqual(['10.244.1.66/24', 'fd00:10:244:1::66/64']);
    expect(first.interfaces![2]!.mac).toBe('0a:00:00:00:00:42');
    expect(linksOf(pod).find(({ ifname }) => ifname === 'eth0')!.address).toBe('0a:00:00:00:00:42');
    const CNI_ARGS = 'IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=x;IP=10.244.1.67';
    const second = await node.add(other, { env: { CNI_ARGS } });
    expect(second.ips!.map(({ address }) => address)).toEqual(['10.244.1.67/24', 'fd00:10:244:1::67/64']);
    expect(reaches(pod, '10.244.1.67')).toBe(true);
    const taken = { command: 'ADD', netns: third, config: node.config(), env: { CNI_ARGS } };
    expect((await callPlugin(node.namespace, taken)).json).toMatchObject({
      code: 107,
      msg: 'Cannot reserve the address asked for, 10.244.1.67: it is in use',
    });
  });

  it('brings ranges of its own', async () => {
    const node = createNode();
    const runtimeConfig = { ipRanges: [[{ subnet: '10.77.0.0/24' }]] };
    const result = await node.add(createNamespace('pod'), { config: node.config({ runtimeConfig }, { ranges: [] }) });
    expect(result.ips!.map(({ address }) => address)).toEqual(['10.77.0.2/24']);
  });

  it('is not harmed by stale neighbours when another pod gets an address with another MAC', async () => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    const config = (mac: string) => node.config({ runtimeConfig: { mac, ips: ['10.244.1.9'] } });
    await node.add(pod, { config: config('0a:00:00:00:00:01') });
    expect(reaches(node.namespace, '10.244.1.9')).toBe(true);
    await node.del(pod);
    await node.add(other, { config: config('0a:00:00:00:00:02') });
    expect(reaches(node.namespace, '10.244.1.9')).toBe(true);
  });
});

it('names the keys that have no effect, and obeys the others', async () => {
  const node = createNode();
  const pod = createNamespace('pod');
  const config = node.config(
    { colour: 'blue', backend: 'iptables', markMasqBit: 13, runtimeConfig: { x: 1 } },
    { pool: 'a' },
  );
  const { status, stderr } = await callPlugin(node.namespace, { command: 'ADD', netns: pod, config });
  expect(status).toBe(0);
  expect(stderr.split('\n').filter(Boolean)).toEqual([
    'nodeplane-cni: Key "colour" is not known and has no effect',
    'nodeplane-cni: Key "backend" has no effect: rules are made by nftables, over netlink',
    'nodeplane-cni: Key "markMasqBit" has no effect: rules are made by nftables, over netlink',
    'nodeplane-cni: Key "ipam.pool" is not known and has no effect',
    'nodeplane-cni: Capability "x" is not known and has no effect',
  ]);
});

it('never hands out what the configuration excludes', async () => {
  const node = createNode();
  const config = node.config({}, { exclude: ['10.244.1.0/28', '10.244.1.16', 'fd00:10:244:1::/65'] });
  const { ips } = await node.add(createNamespace('pod'), { config });
  expect(ips!.map(({ address }) => address)).toEqual(['10.244.1.17/24', 'fd00:10:244:1:8000::/64']);
});
