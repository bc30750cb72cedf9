import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createHost } from '../host.ts';
import { execIn } from '../iptables/fixtures.ts';
import type { Agent } from '../lab.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { createServedNode, installedConfig } from './served-node.ts';

const served = createServedNode();
let agent: Agent;

const ruleset = () => served.node.namespace.run('nft', 'list', 'ruleset');
/** What the pods have there: lines that name a link of ours. */
const ofPods = () => (ruleset().match(/veth[0-9a-f]{11} /g) ?? []).sort();
const statusText = async () => (await execIn(served.node.namespace)(builtProgram('nodeplane'), ['status'])).stdout;
const config = (hostPort: number) => ({
  ...installedConfig(served.conflist),
  runtimeConfig: { portMappings: [{ hostPort, containerPort: 80, protocol: 'tcp' }] },
});

beforeAll(async () => {
  agent = await served.startAgent({ flags: ['--cluster-cidr=10.244.0.0/16'] });
});
afterAll(removeAll);

it('brings back what pods have in nftables after a flush, and nothing of pods that were detached', async () => {
  const [stays, goes] = [createNamespace('stays'), createNamespace('goes')];
  expect(await served.call('ADD', stays, { config: config(8080) })).toMatchObject({ status: 0 });
  const before = ofPods();
  expect(before.length).toBeGreaterThan(1);
  const showsPods = () => ruleset().includes('ip daddr 10.244.0.0/16 return');
  expect(showsPods()).toBe(true);
  expect(await served.call('ADD', goes, { config: config(8081) })).toMatchObject({ status: 0 });
  await expect.poll(ofPods).not.toEqual(before);

  served.node.namespace.run('nft', 'flush', 'ruleset');
  await expect.poll(() => ofPods().length).toBeGreaterThan(before.length);
  expect(showsPods()).toBe(true);
  const restored = { msg: 'Rules of pods were flushed by others; they are back', elementsAdded: expect.any(Number) };
  await expect.poll(() => agent.logs()).toContainEqual(expect.objectContaining(restored));

  // Another program than the agent detaches one: that is no flush.
  const alone = {
    program: builtProgram('nodeplane-cni'),
    config: {
      ...config(8081),
      ipam: { type: 'nodeplane', dataDir: served.dataDir, ranges: [[{ subnet: '10.244.1.0/24' }]] },
    },
  };
  expect(await served.call('DEL', goes, alone)).toMatchObject({ status: 0 });
  served.node.namespace.run('nft', 'flush', 'ruleset');
  await expect.poll(ofPods).toEqual(before);
});

it('tells of a table of others that drops what pods send, once while it is there', async () => {
  const { run } = served.node.namespace;
  const told = () =>
    agent
      .logs()
      .filter(({ msg }) => msg === 'Another program’s rules may drop packets of pods')
      .map(({ reason }) => reason);
  const site = 'add table inet site; add chain inet site passing { type filter hook forward priority 0; policy drop; }';
  expect(await served.call('ADD', createNamespace('passes'), { config: config(8085) })).toMatchObject({ status: 0 });
  // As firewalld has one while it reloads.
  run('sh', '-ec', `nft '${site}'; sleep 0.5; nft delete table inet site`);
  await delay(4000);
  expect(told()).toEqual([]);
  run('nft', site);
  const reason = expect.stringContaining('Chain "passing" of the nftables table "inet site"');
  await expect.poll(told).toEqual([reason]);
  run('nft', 'add table inet unrelated');
  run('nft', 'delete table inet site; delete table inet unrelated');
  // It rests between its looks.
  await expect.poll(statusText, { timeout: patient(10_000), interval: 500 }).not.toContain('Chain "passing"');
  expect(told()).toEqual([reason]);
  run('nft', site);
  await expect.poll(told).toEqual([reason, reason]);
  run('nft', 'delete table inet site');
});

it('tells of a chain FORWARD of legacy iptables that drops what pods send, within half a minute', async () => {
  const { run } = served.node.namespace;
  const reason = expect.stringContaining(
    'Chain FORWARD of legacy iptables (IPv4) drops what it does not accept itself',
  );
  const told = () => agent.logs().filter(({ msg }) => msg === 'Another program’s rules may drop packets of pods');
  expect(await served.call('ADD', createNamespace('kept'), { config: config(8086) })).toMatchObject({ status: 0 });
  run('iptables-legacy', '-P', 'FORWARD', 'DROP');
  await expect
    .poll(told, { timeout: patient(45_000) })
    .toContainEqual(expect.objectContaining({ level: 'warn', reason }));
  const status = await statusText();
  expect(status).toMatch(/✗ {2}Rules in the kernel/);
  expect(status).toMatch(/Chain FORWARD of legacy iptables \(IPv4\) drops.*\n +nodeplane preflight --/);
  run('iptables-legacy', '-P', 'FORWARD', 'ACCEPT');
});

it('tells of a host port that others lead somewhere, and how to have it back', async () => {
  const { run } = served.node.namespace;
  run('nft', 'add element inet nodeplane-cni ports-ipv4 { tcp . 7777 : 10.244.1.99 . 80 }');
  const removal = "nft delete element inet nodeplane-cni ports-ipv4 '{ tcp . 7777 }'";
  const outcome = await served.call('ADD', createNamespace('refused'), { config: config(7777) });
  expect(outcome.stdout).toContain(`leads to 10.244.1.99`);
  expect(outcome.stdout).toContain(removal);
  const diff = await execIn(served.node.namespace)(builtProgram('nodeplane'), ['diff']);
  expect(diff.stdout).toContain('element { tcp . 7777 } of set inet nodeplane-cni ports-ipv4');
  run('sh', '-c', removal);
});

it('brings back what a pod has when it is flushed before anybody could read it', async () => {
  for (const port of [8090, 8091, 8092]) {
    const pod = createNamespace('soon');
    expect(await served.call('ADD', pod, { config: config(port) })).toMatchObject({ status: 0 });
    served.node.namespace.run('nft', 'flush', 'ruleset');
    await expect.poll(ruleset).toContain(`. ${port} comment`);
  }
});

it('brings back what was flushed while no agent ran', async () => {
  const outside = served.addClient('outside');
  await outside.serve({ port: 9090 });
  const others = ofPods();
  const namespace = createNamespace('web');
  const added = await served.call('ADD', namespace, { config: config(8099) });
  expect(added).toMatchObject({ status: 0 });
  const ips = added.json!.ips!.map(({ address }) => address.replace(/\/.*/, ''));
  const web = createHost({ name: 'web', namespace, ips });
  await web.serve({ port: 80 });
  const inwards = () => outside.connect({ ip: served.node.ip(), port: 8099 });
  const outwards = () => web.connect({ ip: outside.ip(), port: 9090 });
  expect(await inwards()).toMatchObject({ kind: 'answered', by: 'web' });
  expect(await outwards()).toMatchObject({ kind: 'answered', source: served.node.ip() });

  await agent.stop();
  // Attached by another process meanwhile, without addresses.
  const beside = createNamespace('beside');
  const bare = { cniVersion: '1.1.0', name: 'bare', macspoofchk: true, dataDir: served.dataDir };
  const alone = { program: builtProgram('nodeplane-cni'), config: bare };
  expect(await served.call('ADD', beside, alone)).toMatchObject({ status: 0 });
  const before = ofPods();
  served.node.namespace.run('nft', 'flush', 'ruleset');
  expect(await inwards()).not.toMatchObject({ kind: 'answered' });
  agent = await served.startAgent({ flags: ['--cluster-cidr=10.244.0.0/16'] });
  await expect.poll(inwards).toMatchObject({ kind: 'answered', by: 'web' });
  expect(await outwards()).toMatchObject({ kind: 'answered', source: served.node.ip() });
  expect(ofPods()).toEqual(before);
  expect(await served.call('DEL', namespace)).toMatchObject({ status: 0 });
  expect(await served.call('DEL', beside, alone)).toMatchObject({ status: 0 });
  expect(ofPods()).toEqual(others);
});
