import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeService, makeSlice } from '../fakes/service-objects.ts';
import { type Agent, createLab, type HeldConnection, type LabNode, type Pod, removeAll, tally } from '../lab/lab.ts';
import { patient } from '../lab/patience.ts';
import { builtProgram } from '../lab/programs.ts';
import { manifestOf, nodeObject, saveManifest } from '../samples/manifests.ts';

// An endpoint that goes under many open connections, across a restart of the agent; and what others have in IPVS.

const VIP = '10.96.1.1';
const TARGET = { ip: VIP, port: 80 };
const OPEN = 200;

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const manifests = join(lab.folder, 'manifests');
let web: Pod[];
let client: Pod;
const outside = lab.addClient('outside');
let agent: Agent;

const start = (...flags: string[]) =>
  node.startAgent({
    manifests,
    flags: ['--proxy-mode', 'ipvs', '--ipvs-min-sync-period', '0s', '--cluster-cidr', '10.244.0.0/16', ...flags],
  });

/** Writes the Service with these endpoints, and waits until the agent says that it is in the kernel. */
const change = (pods: readonly Pod[]) => synced(() => save(pods));

async function synced(work: () => void): Promise<void> {
  const syncs = () => agent.logs().filter((line) => line.msg === 'Synced' && line.family === 'IPv4').length;
  const before = syncs();
  work();
  await expect.poll(syncs).toBeGreaterThan(before);
}

function save(pods: readonly Pod[]): void {
  const endpoints = pods.map((pod) => ({ addresses: [pod.ip()], nodeName: 'node-1' }));
  const service = makeService('default/web', { clusterIP: VIP });
  saveManifest(manifests, 'all.yaml', manifestOf(service, makeSlice('default/web', endpoints)));
}

const destinations = () => node.namespace.run('ipvsadm', '-Ln', '-t', `${VIP}:80`);
const serving = async () => {
  const { answers, failures } = tally(await client.connectMany(TARGET, 24));
  expect(failures).toEqual({});
  return Object.keys(answers).sort();
};

beforeAll(async () => {
  web = ['web-1', 'web-2'].map((name) => node.addPod(name));
  client = node.addPod('client');
  for (const pod of web) await pod.serve({ port: 8080 });
  mkdirSync(manifests);
  save(web);
  node.namespace.run('ipvsadm', '-A', '-t', '192.168.50.1:6443', '-s', 'wrr');
  node.namespace.run('ipvsadm', '-a', '-t', '192.168.50.1:6443', '-r', '192.168.50.77:6443', '-m');
  agent = await start();
});
afterAll(async () => {
  await agent.stop();
  removeAll();
});

const inNode = (...words: string[]) => {
  const run = ['netns', 'exec', node.namespace.name, ...words];
  return spawnSync('ip', run, { encoding: 'utf8' });
};
const diff = (...flags: string[]) => inNode(builtProgram('nodeplane'), 'diff', ...flags);

it('what the mode sets once for the node is compared and repaired', async () => {
  // By now the kernel tracks connections, and takes the timeouts; how many is the machine's business alone.
  await agent.stop();
  agent = await start('--conntrack-max-per-core', '0');
  expect(diff().stdout).toContain('\nsettings of the node: equal\n');
  for (const name of ['vs/conntrack', 'ip_forward']) {
    expect(inNode('sh', '-c', `echo 0 > /proc/sys/net/ipv4/${name}`).status).toBe(0);
  }
  const found = diff();
  expect(found.stdout).toContain(
    '\n  ~ sysctl net/ipv4/vs/conntrack\n      - net/ipv4/vs/conntrack=0\n      + net/ipv4/vs/conntrack=1\n',
  );
  expect(found.stdout).toContain('\n  ~ sysctl net/ipv4/ip_forward\n');
  expect(found.status).toBe(1);
  expect(diff('--repair').stdout).toContain('\nsettings of the node: equal, 2 differences repaired\n');
  expect(diff().status).toBe(0);
});

it.each(['legacy', 'nft'])('the rules of iptables-%s are back at once when others flush them', async (variant) => {
  await agent.stop();
  const flags = ['--ipvs-sync-period', '1h', '--conntrack-max-per-core', '0', '--iptables-variant', variant];
  agent = await start(...flags);
  // Of nft all is there already: nothing is written, and yet the agent listens.
  const iptables = `iptables-${variant}`;
  const jumps = () => node.namespace.run(iptables, '-t', 'nat', '-S', 'POSTROUTING');
  const before = jumps();
  expect(before).toContain('-j KUBE-POSTROUTING');
  node.namespace.run(iptables, '-t', 'nat', '-F');
  await expect.poll(jumps, { timeout: patient(20_000) }).toBe(before);
  await expect.poll(() => diff().status).toBe(0);
});

it('by which part of addresses clients are held is compared and repaired', async () => {
  const sticky = '-t 10.96.1.3:80 -s rr -p 600';
  const servers = () => node.namespace.run('ipvsadm', '-Sn');
  const affinity = {
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } },
  } as const;
  const service = makeService('default/sticky', { clusterIP: '10.96.1.3', ...affinity });
  const slice = makeSlice('default/sticky', [{ addresses: [web[0]!.ip()], nodeName: 'node-1' }]);
  saveManifest(manifests, 'sticky.yaml', manifestOf(service, slice));
  await expect.poll(servers).toContain(`-A ${sticky}\n`);
  // All of it is written: the agent would put it right itself.
  await expect.poll(() => diff().status).toBe(0);
  node.namespace.run('ipvsadm', '-E', ...sticky.split(' '), '-M', '255.255.255.0');
  expect(servers()).toContain(`-A ${sticky} -M 255.255.255.0\n`);
  const found = diff();
  expect(found.stdout).toContain("persistence 600 s, by 255.255.255.0 of the client's address\n");
  expect(found.status).toBe(1);
  diff('--repair');
  expect(servers()).toContain(`-A ${sticky}\n`);
  expect(diff().status).toBe(0);
});

it('how many connections a destination takes is compared and repaired', async () => {
  const destination = `${web[0]!.ip()}:8080`;
  const listing = () => node.namespace.run('ipvsadm', '-Ln', '--thresholds', '-t', '10.96.1.3:80');
  const limits = () => /^ *-> (\S+) +(\d+) /m.exec(listing())!.slice(1);
  const edit = ['-e', '-t', '10.96.1.3:80', '-r', destination, '-m', '-w', '1', '-x', '3'];
  node.namespace.run('ipvsadm', ...edit);
  expect(limits()).toEqual([destination, '3']);
  const found = diff();
  expect(found.stdout).toContain(`${destination} weight 1, at most 3 connections\n`);
  expect(found.status).toBe(1);
  diff('--repair');
  expect(limits()).toEqual([destination, '0']);
  expect(diff().status).toBe(0);
});

describe('an endpoint that goes', () => {
  it(`lets ${OPEN} open connections finish and gets no new one, also across a restart, and is gone with the last`, async () => {
    const held: HeldConnection[] = [];
    while (held.length < OPEN) {
      held.push(...(await Promise.all(Array.from({ length: 20 }, () => client.hold(TARGET, { timeoutMs: 10_000 })))));
    }
    const by = held.map(({ outcome }) => (outcome.kind === 'answered' ? outcome.by : outcome.kind));
    expect(by.filter((name) => name === 'web-1')).toHaveLength(OPEN / 2);
    const stillThere = async () => {
      const outcomes = await Promise.all(held.map((connection) => connection.echo({ timeoutMs: 10_000 })));
      return outcomes.map((outcome) => (outcome.kind === 'answered' ? outcome.by : outcome.kind));
    };

    await change([web[1]!]);
    expect(await serving()).toEqual(['web-2']);
    expect(await stillThere()).toEqual(by);

    await agent.kill();
    agent = await start();
    expect(await serving()).toEqual(['web-2']);
    expect(await stillThere()).toEqual(by);
    expect(destinations()).toMatch(new RegExp(`${web[0]!.ip()}:8080 +Masq +0 +${OPEN / 2} `));

    // The pod ends, which resets them; closed in order they would be remembered for two minutes.
    await web[0]!.stopServing({ port: 8080 });
    await expect.poll(destinations).not.toContain(`${web[0]!.ip()}:8080`);
    await Promise.all(held.map((connection) => connection.close()));
    expect(destinations()).toContain(`${web[1]!.ip()}:8080`);
  });
});

describe('an external IP among the addresses that have NodePorts', () => {
  const EXTERNAL = '192.168.50.200';
  const saveIn = (zone: string) => {
    const external = { type: 'NodePort', externalIPs: [EXTERNAL], ports: [{ port: 80, nodePort: 30080 }] } as const;
    const service = makeService('default/outside', { clusterIP: '10.96.1.2', ...external });
    const endpoints = makeSlice('default/outside', [{ addresses: [web[1]!.ip()], nodeName: 'node-1' }]);
    const labels = { 'topology.kubernetes.io/zone': zone };
    const own = nodeObject(node);
    const inZone = { ...own, metadata: { ...own.metadata, labels } };
    saveManifest(manifests, 'outside.yaml', manifestOf(inZone, service, endpoints));
  };
  const answered = async (ip: string, port: number) => {
    const { kind } = await outside.connect({ ip, port }, { timeoutMs: 3000 });
    return kind === 'answered';
  };

  it('is served on, without NodePorts of its own, however often the node is looked at', async () => {
    await agent.stop();
    saveIn('a');
    agent = await start('--nodeport-addresses', '192.168.50.0/24');
    for (const zone of ['b', 'c', 'd']) {
      expect(await answered(EXTERNAL, 80)).toBe(true);
      expect(await answered(node.ip(), 30080)).toBe(true);
      expect(node.namespace.run('ip', '-o', 'address', 'show', 'kube-ipvs0')).toContain(`${EXTERNAL}/32`);
      expect(node.namespace.run('ipvsadm', '-Sn')).not.toContain(`${EXTERNAL}:30080`);
      await synced(() => saveIn(zone));
    }
  });
});

describe('what somebody else has in IPVS', () => {
  it('is left alone by the agent, and by the clean-up, which leaves nothing else', async () => {
    expect(node.namespace.run('ipvsadm', '-Sn')).toContain('-a -t 192.168.50.1:6443 -r 192.168.50.77:6443 -m');
    await agent.stop();
    execFileSync('ip', ['netns', 'exec', node.namespace.name, builtProgram('nodeplane'), 'cleanup']);
    expect(node.namespace.run('ipvsadm', '-Sn').trim().split('\n')).toEqual([
      '-A -t 192.168.50.1:6443 -s wrr',
      '-a -t 192.168.50.1:6443 -r 192.168.50.77:6443 -m -w 1',
    ]);
    expect(node.namespace.run('ipset', 'list', '-n')).toBe('');
    expect(node.namespace.run('ip', '-o', 'link')).not.toContain('kube-ipvs0');
    expect(node.iptablesSave('nft')).not.toContain('KUBE-');
  });
});
