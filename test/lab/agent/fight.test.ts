import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { on, served, TARGET } from '../explain/explain-world.ts';
import { createLab, removeAll } from '../lab.ts';
import { createFolder } from '../namespace.ts';
import { patient } from '../patience.ts';

// Somebody flushes the rules again and again: a loop in a script, a firewall whose service is started anew without end.

afterAll(removeAll);

const SERVICE = { ip: '10.96.0.10', port: 80 };
const FLUSHES = 40;

it('rules that are flushed without end are repaired once a second and told a few times; then all is as before', async () => {
  const node = createLab().addNode({ name: 'node-1' });
  const [web, client] = [node.addPod('web'), node.addPod('client')];
  await web.serve({ port: TARGET });
  const manifests = createFolder('manifests').path;
  saveManifest(
    manifests,
    'all.yaml',
    manifestOf(nodeObject(node), ...served('shop/web', SERVICE.ip, [on(node, web.ip())])),
  );
  const agent = await node.startAgent({ manifests, flags: ['--proxy-mode', 'nftables', '--routes', 'vxlan'] });
  const answers = async () => (await client.connect(SERVICE, { timeoutMs: 1000 })).kind;
  await expect.poll(answers).toBe('answered');
  const before = agent.logs().length;
  const began = performance.now();
  for (let i = 0; i < FLUSHES; i++) {
    node.namespace.run('nft', 'flush', 'ruleset');
    await delay(100);
  }
  const seconds = (performance.now() - began) / 1000;
  await expect.poll(answers, { timeout: patient(5000) }).toBe('answered');

  const warnings = agent
    .logs()
    .slice(before)
    .filter(({ level }) => level === 'warn');
  const told = (text: string, family?: string) =>
    warnings.filter(({ msg, family: of }) => String(msg).includes(text) && of === family).length;
  // At once three times, as after a reload; and once a minute then.
  expect(told('Somebody changed our rules', 'IPv4')).toBeLessThanOrEqual(3 + Math.ceil(seconds / 60));
  expect(told('rules for the tunnel')).toBe(1);
  const [, repairs] = /^nodeplane_routes_rule_repairs_total (\d+)$/m.exec(await agent.metrics())!;
  expect(Number(repairs)).toBeGreaterThan(1);
  expect(Number(repairs)).toBeLessThanOrEqual(4 + seconds);
  expect(await agent.stop()).toBe(0);
});
