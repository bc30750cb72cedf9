import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { linksOf } from './fixture.ts';
import { holdNetwork } from './lock-holder.ts';
import { createServedNode } from './served-node.ts';

afterEach(removeAll);

/** A DEL as the plugin keeps it, see src/agent/cni/server/protocol.ts. */
function keptDelete(container: string, config: string): Buffer {
  const variables = Buffer.from(`CNI_COMMAND=DEL\0CNI_CONTAINERID=${container}\0CNI_IFNAME=eth0\0CNI_PATH=/nowhere\0`);
  const header = Buffer.alloc(16);
  header.write('NPCQ\x01');
  header.writeUInt32LE(variables.length, 8);
  header.writeUInt32LE(config.length, 12);
  return Buffer.concat([header, variables, Buffer.from(config)]);
}

it('the agent sets aside kept DELs that it cannot settle, and serves', async () => {
  const served = createServedNode();
  let agent = await served.startAgent();
  const [first, second] = [createNamespace('first'), createNamespace('second')];
  expect(await served.call('ADD', first)).toMatchObject({ status: 0 });
  await agent.stop();
  const deep = `{"cniVersion":"1.1.0","name":"net","prevResult":${'['.repeat(6000)}${']'.repeat(6000)}}`;
  writeFileSync(join(served.spoolDir, '000000000001.000000000-1.request'), keptDelete('deep', deep));
  writeFileSync(join(served.spoolDir, '000000000002.000000000-1.request'), 'NPCQ');
  writeFileSync(join(served.spoolDir, '000000000003.000000000-1.request'), Buffer.alloc(3 << 20));
  expect(await served.call('DEL', first)).toMatchObject({ status: 0 });
  agent = await served.startAgent();
  const started = performance.now();
  expect(await served.call('ADD', second)).toMatchObject({ status: 0 });
  // It would have waited for 45 seconds.
  expect(performance.now() - started).toBeLessThan(20_000);
  expect(served.kept()).toEqual([]);
  expect(linksOf(served.node.namespace).filter(({ ifname }) => ifname.startsWith('veth'))).toHaveLength(1);

  const aside = join(served.spoolDir, 'set-aside');
  const reasonOf = (n: number) => readFileSync(join(aside, `00000000000${n}.000000000-1.request.reason`), 'utf8');
  expect(readdirSync(aside)).toHaveLength(6);
  expect(reasonOf(1)).toContain('nested more than 64 deep');
  expect(reasonOf(2)).toContain('its header has 4 bytes');
  expect(reasonOf(3)).toContain('3145728 bytes');
  const logged = agent.logs().filter(({ msg }) => String(msg).includes('set aside'));
  expect(logged.map(({ file }) => existsSync(String(file)))).toEqual([true, true, true]);
  const metrics = await agent.metrics();
  expect(metrics).toContain('nodeplane_cni_set_aside_requests_total{reason="refused"} 1');
  expect(metrics).toContain('nodeplane_cni_set_aside_requests_total{reason="unreadable"} 2');
});

it('kept DELs that hang keep neither Services nor the end of the agent waiting', async () => {
  const served = createServedNode();
  let agent = await served.startAgent();
  const pods = ['first', 'second', 'third'].map((name) => createNamespace(name));
  for (const pod of pods) expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
  await agent.stop();
  for (const pod of pods) expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
  rmSync(served.conflist);
  const release = await holdNetwork(join(served.dataDir, 'nodeplane'));
  // Resolves when Services are in force.
  agent = await served.startAgent({ until: 'synced' });
  expect((await served.node.httpGet('http://127.0.0.1:10256/readyz')).body).toContain('kept while no agent ran');
  expect(served.kept()).toHaveLength(3);
  await agent.stop();
  // What it had begun may fail meanwhile, and stays kept.
  expect({ kept: served.kept().length, installed: existsSync(served.conflist) }).toEqual({ kept: 3, installed: false });
  expect(agent.logs().filter(({ msg }) => String(msg).startsWith('CNI DEL settled'))).toEqual([]);

  release();
  await served.startAgent();
  expect({ kept: served.kept(), installed: existsSync(served.conflist) }).toEqual({ kept: [], installed: true });
});
