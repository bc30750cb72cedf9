import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, describe, expect, it } from 'vitest';
import {
  disableRouteLocalnet,
  enableRouteLocalnet,
  guardLoopback,
  IptablesDataplane,
} from '../../../src/proxy/iptables/index.ts';
import { type IptablesVariant, iptablesTool } from '../../../src/proxy/rules/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { execIn, saved, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

const port = samplePort({ name: 'shop/web', clusterIp: '10.96.0.9', nodePort: 30080, local: ['10.1.0.2:8080'] });
const withLoopback = samplePlan('IPv4', sampleNode({ loopbackNodePorts: true }), [port]);
const without = samplePlan('IPv4', sampleNode(), [port]);
const GUARD =
  '! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP';

describe.each(['legacy', 'nft'] as IptablesVariant[])('%s: NodePorts on loopback addresses', (variant) => {
  it('answer when asked for, and only then', async () => {
    const node = createNamespace(`loop-${variant}`);
    const pod = createNamespace(`pod-${variant}`);
    node.run('ip', 'link', 'set', 'lo', 'up');
    node.run('ip', 'link', 'add', 'veth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pod.name);
    node.run('ip', 'address', 'add', '10.1.0.1/24', 'dev', 'veth0');
    node.run('ip', 'link', 'set', 'veth0', 'up');
    pod.run('ip', 'address', 'add', '10.1.0.2/24', 'dev', 'eth0');
    pod.run('ip', 'link', 'set', 'eth0', 'up');
    const serve = `require('node:net').createServer((s) => s.end(s.remoteAddress)).listen(8080, '10.1.0.2', () => console.log('ready'))`;
    const server = spawn('nsenter', [`--net=${pod.path}`, process.execPath, '-e', serve]);
    await once(server.stdout, 'data');
    try {
      const exec = execIn(node);
      const ask = async () => (await exec('timeout', ['1', 'bash', '-c', 'cat < /dev/tcp/127.0.0.1/30080'])).stdout;
      const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec });
      await dataplane.resync(without);
      expect(inNetns(node.path, enableRouteLocalnet)).toBe(true);
      expect(await ask()).toBe('');
      await dataplane.resync(withLoopback);
      expect(await ask()).toBe('10.1.0.1');
      expect(await dataplane.verify()).toEqual([]);
      expect(inNetns(node.path, enableRouteLocalnet)).toBe(false);
    } finally {
      server.kill('SIGKILL');
    }
  });

  it('are guarded by a chain that is shared with the kubelet', async () => {
    const node = createNamespace(`guard-${variant}`);
    const exec = execIn(node);
    const iptables = (...args: string[]) => node.run(`iptables-${variant}`, ...args);
    const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec });
    await dataplane.resync(withLoopback);
    iptables('-A', 'KUBE-FIREWALL', '-m', 'mark', '--mark', '0x8000/0x8000', '-j', 'DROP');
    const before = await saved(exec, 'IPv4', variant);
    const kubelets = '-m mark --mark 0x8000/0x8000 -j DROP';
    expect(before['filter KUBE-FIREWALL']).toEqual([GUARD, kubelets]);
    for (const chain of ['INPUT', 'OUTPUT']) expect(before[`filter ${chain}`]![0]).toBe('-j KUBE-FIREWALL');
    expect(await dataplane.verify()).toEqual([]);

    iptables('-D', 'KUBE-FIREWALL', '1');
    iptables('-D', 'INPUT', '1');
    expect(await dataplane.verify()).toEqual([
      { object: 'jump filter KUBE-FIREWALL -> DROP', difference: 'missing' },
      { object: 'jump filter INPUT -> KUBE-FIREWALL', difference: 'missing' },
    ]);
    await dataplane.resync(withLoopback);
    expect(await saved(exec, 'IPv4', variant)).toEqual(before);

    await dataplane.cleanup();
    const after = await saved(exec, 'IPv4', variant);
    expect(after['filter KUBE-FIREWALL']).toEqual([GUARD, kubelets]);
    expect(after['filter INPUT']).toEqual(['-j KUBE-FIREWALL']);
  });

  it('open loopback to neighbours neither before the guard nor after it', async () => {
    const node = createNamespace(`open-${variant}`);
    const neighbour = createNamespace(`near-${variant}`);
    node.run('ip', 'link', 'set', 'lo', 'up');
    node.run('ip', 'link', 'add', 'veth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', neighbour.name);
    for (const [host, address, device] of [
      [node, '10.1.0.1/24', 'veth0'],
      [neighbour, '10.1.0.2/24', 'eth0'],
    ] as const) {
      host.run('ip', 'address', 'add', address, 'dev', device);
      host.run('ip', 'link', 'set', device, 'up');
    }
    // What CVE-2020-8558 takes: a neighbour that sends to 127.0.0.1 over the wire.
    neighbour.run('sh', '-c', 'echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet');
    neighbour.run('ip', 'route', 'add', '127.0.0.1/32', 'via', '10.1.0.1', 'dev', 'eth0', 'src', '10.1.0.2');
    const serve = `require('node:net').createServer((s) => s.end('secret')).listen(9000, '127.0.0.1', () => console.log('ready'))`;
    const server = spawn('nsenter', [`--net=${node.path}`, process.execPath, '-e', serve]);
    await once(server.stdout, 'data');
    try {
      const exec = execIn(node);
      const attack = async () =>
        (await execIn(neighbour)('timeout', ['1', 'bash', '-c', 'cat < /dev/tcp/127.0.0.1/9000'])).stdout;
      const tool = iptablesTool('IPv4', variant, exec);
      expect(await attack()).toBe('');
      expect(inNetns(node.path, enableRouteLocalnet)).toBe(true);
      expect(await attack()).toBe('secret');
      await guardLoopback(tool);
      expect(await attack()).toBe('');
      const guarded = await saved(exec, 'IPv4', variant);
      await guardLoopback(tool);
      expect(await saved(exec, 'IPv4', variant)).toEqual(guarded);
      node.run(`iptables-${variant}`, '-F');
      expect(await attack()).toBe('secret');
      expect(inNetns(node.path, disableRouteLocalnet)).toBe(true);
      expect(await attack()).toBe('');
      expect(inNetns(node.path, disableRouteLocalnet)).toBe(false);
      node.run('sh', '-c', 'echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet');
      expect(inNetns(node.path, disableRouteLocalnet)).toBe(false);
    } finally {
      server.kill('SIGKILL');
    }
  });
});
