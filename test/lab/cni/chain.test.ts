import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createFolder, createNamespace, removeAll } from '../namespace.ts';
import { createNode, linksOf, reaches, snapshot } from './fixture.ts';
import { callPlugin, type PluginJson } from './plugin.ts';

// The reference plugins, as Debian packages them (containernetworking-plugins).
const REFERENCE = '/usr/lib/cni';

beforeAll(() => {
  if (!existsSync(`${REFERENCE}/portmap`)) {
    throw new Error(`Need ${REFERENCE}/portmap: apt-get install --no-install-recommends containernetworking-plugins`);
  }
});
afterEach(removeAll);

/** A node with one pod, to which a list of plugins is applied as a runtime does it. */
function listOf(plugins: readonly { readonly type: string; readonly [key: string]: unknown }[], cniVersion = '1.0.0') {
  const node = createNode();
  const pod = createNamespace('pod');
  const env = { CNI_PATH: REFERENCE, XTABLES_LOCKFILE: join(createFolder('lock').path, 'lock') };
  const call = async (command: string, plugin: (typeof plugins)[number], prevResult: PluginJson | undefined) => {
    const ours = plugin.type === 'nodeplane-cni';
    const config = ours ? node.config({ cniVersion, prevResult }) : { cniVersion, name: 'net', ...plugin, prevResult };
    const program = ours ? {} : { program: `${REFERENCE}/${plugin.type}` };
    const outcome = await callPlugin(node.namespace, {
      command,
      containerId: 'c1',
      netns: pod,
      config,
      env,
      ...program,
    });
    if (outcome.status !== 0) throw new Error(`${plugin.type} ${command}: ${outcome.stdout}${outcome.stderr}`);
    return outcome.json;
  };
  let result: PluginJson | undefined;
  return {
    node,
    pod,
    async add() {
      for (const plugin of plugins) result = await call('ADD', plugin, result);
      return result!;
    },
    async check() {
      // portmap 1.1.1 looks for the rules of one family in the other, and finds fault with itself.
      for (const plugin of plugins) if (plugin.type !== 'portmap') await call('CHECK', plugin, result);
    },
    async del() {
      for (const plugin of plugins.toReversed()) await call('DEL', plugin, result);
    },
  };
}

describe('in a list with plugins of the reference', () => {
  it('portmap and bandwidth work behind it, and CHECK and DEL are content with their result', async () => {
    const runtimeConfig = {
      portMappings: [{ hostPort: 8080, containerPort: 9, protocol: 'tcp' }],
    };
    const list = listOf([
      { type: 'nodeplane-cni' },
      { type: 'portmap', capabilities: { portMappings: true }, runtimeConfig },
      { type: 'bandwidth', ingressRate: 1e8, ingressBurst: 1e8, egressRate: 1e8, egressBurst: 1e8 },
    ]);
    const { node, pod } = list;
    node.namespace.run('ip', 'link', 'set', 'lo', 'up');
    const result = await list.add();
    // bandwidth lists its own device behind ours.
    expect(result.interfaces!.map(({ name }) => name)).toEqual([
      'cni0',
      expect.stringMatching(/^veth/),
      'eth0',
      expect.stringMatching(/^bwp/),
    ]);
    expect(node.namespace.run('tc', 'qdisc', 'show', 'dev', result.interfaces![1]!.name)).toContain('tbf');
    // Nothing listens on the pod's port 9: a refusal that comes from there went through the mapping.
    const client = createNamespace('client');
    node.namespace.run('ip', 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', 'up1', 'netns', client.name);
    node.namespace.run('ip', 'address', 'add', '192.0.2.1/24', 'dev', 'up0');
    node.namespace.run('ip', 'link', 'set', 'up0', 'up');
    client.run('ip', 'address', 'add', '192.0.2.2/24', 'dev', 'up1');
    client.run('ip', 'link', 'set', 'up1', 'up');
    const rules =
      node.namespace.run('iptables-save', '-t', 'nat') + node.namespace.run('iptables-legacy-save', '-t', 'nat');
    expect(rules).toContain('--to-destination 10.244.1.2:9');
    await list.check();
    await list.del();
    expect(linksOf(node.namespace).map(({ ifname }) => ifname)).toEqual(['lo', 'cni0', 'up0']);
    expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
    expect(node.reservations()).toEqual([]);
  });

  it('tuning changes the interface behind it, and CHECK goes by what it says', async () => {
    const list = listOf([{ type: 'nodeplane-cni' }, { type: 'tuning', mac: '0a:00:00:00:00:77', mtu: 1400 }]);
    await list.add();
    expect(linksOf(list.pod).find(({ ifname }) => ifname === 'eth0')).toMatchObject({ address: '0a:00:00:00:00:77' });
    await list.check();
    await list.del();
  });

  it('adds its own to the result of a plugin before it that makes another interface', async () => {
    const { node, pod } = listOf([]);
    const prevResult = {
      cniVersion: '0.4.0',
      interfaces: [{ name: 'net0', sandbox: pod.path, mac: '02:00:00:00:00:01' }],
      ips: [{ version: '4', address: '10.9.0.2/24', interface: 0 }],
      routes: [{ dst: '10.8.0.0/16', gw: '10.9.0.1' }],
      dns: { nameservers: ['10.9.0.10'] },
    };
    const result = await node.add(pod, { config: node.config({ cniVersion: '0.4.0', prevResult }) });
    expect(result.interfaces!.map(({ name }) => name)).toEqual(['net0', 'cni0', expect.any(String), 'eth0']);
    expect(result.ips!.map((ip) => [ip.interface, ip.address])).toEqual([
      [0, '10.9.0.2/24'],
      [3, '10.244.1.2/24'],
      [3, 'fd00:10:244:1::2/64'],
    ]);
    expect(result.routes!.map(({ dst }) => dst)).toEqual(['10.8.0.0/16', '0.0.0.0/0', '::/0']);
    expect(result.dns).toEqual({ nameservers: ['10.9.0.10'] });
    expect(reaches(pod, '10.244.1.1')).toBe(true);
  });

  it('refuses to come behind a plugin that made the interface, and changes nothing', async () => {
    const list = listOf([{ type: 'bridge', ipam: { type: 'static', addresses: [{ address: '10.5.0.2/24' }] } }]);
    const prevResult = await list.add();
    const before = snapshot([list.node.namespace, list.pod], list.node.dataDir);
    const config = list.node.config({ cniVersion: '1.0.0', prevResult });
    const { json } = await callPlugin(list.node.namespace, { command: 'ADD', netns: list.pod, config });
    expect(json).toMatchObject({ code: 7, msg: expect.stringContaining('put this one first') });
    expect(snapshot([list.node.namespace, list.pod], list.node.dataDir)).toEqual(before);
  });
});

it.each(['0.1.0', '0.2.0'])('answers in the form of version %s', async (cniVersion) => {
  const node = createNode();
  const pod = createNamespace('pod');
  const config = node.config({ cniVersion });
  expect(await node.add(pod, { config })).toEqual({
    cniVersion,
    ip4: { ip: '10.244.1.2/24', gateway: '10.244.1.1', routes: [{ dst: '0.0.0.0/0', gw: '10.244.1.1' }] },
    ip6: {
      ip: 'fd00:10:244:1::2/64',
      gateway: 'fd00:10:244:1::1',
      routes: [{ dst: '::/0', gw: 'fd00:10:244:1::1' }],
    },
    dns: {},
  });
  await node.del(pod, { config });
  expect(node.reservations()).toEqual([]);
});
