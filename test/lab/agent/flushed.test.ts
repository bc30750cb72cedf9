import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { on, served, TARGET } from '../explain/explain-world.ts';
import { type Agent, createLab, removeAll } from '../lab.ts';
import { createFolder } from '../namespace.ts';
import { patient } from '../patience.ts';

// What a firewall's reload does to the rules of Services. The agent looks by itself once an hour here: the kernel has to tell it.

const VIP = { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' } as const;

const inBoth =
  (...programs: string[]) =>
  (...lines: string[]) =>
    programs.flatMap((program) => lines.map((line) => line.replaceAll('%', program)));
const forBoth = inBoth('iptables-nft', 'ip6tables-nft');
const forLegacy = inBoth('iptables-legacy', 'ip6tables-legacy');
const FLUSHES: Readonly<Record<string, readonly string[]>> = {
  'nft flush ruleset': ['nft flush ruleset'],
  // As firewalld does at its start and with each reload.
  'iptables -F': forBoth('% -t filter -F', '% -t nat -F', '% -t mangle -F'),
  'iptables-legacy -F': forLegacy('% -t filter -F', '% -t filter -X', '% -t nat -F', '% -t nat -X'),
  // As netfilter-persistent does with what was saved before there was an agent.
  'iptables-restore': forBoth("printf '*filter\\nCOMMIT\\n*nat\\nCOMMIT\\n' | %-restore"),
};
const MODES = [
  ['nftables', ['nft flush ruleset'], []],
  ['iptables', ['nft flush ruleset', 'iptables -F', 'iptables-restore'], ['--iptables-variant', 'nft']],
  // The kernel tells nothing of it but how many rules there are, and is asked for that each second.
  ['iptables', ['iptables-legacy -F'], ['--iptables-variant', 'legacy']],
] as const;

afterAll(removeAll);

/** What nobody saves: NodePorts at localhost have a table of nf_tables in every mode. */
describe.each([
  ['nft', '', ''],
  ['legacy', '', ''],
  ['nft', 'iptables-nft-save >saved', 'iptables-nft-restore <saved'],
])('NodePorts at localhost, iptables-%s', (variant, save, restore) => {
  it(`are back at once after "nft flush ruleset"${save && ' and a restore of all else'}`, async () => {
    const node = createLab().addNode({ name: 'node-1' });
    const web = node.addPod('web');
    await web.serve({ port: TARGET });
    const folder = createFolder('manifests').path;
    const spec = { type: 'NodePort', ports: [{ port: 80, targetPort: TARGET, nodePort: 30080 }] } as const;
    const objects = served('shop/web', VIP.IPv4, [on(node, web.ip())], spec);
    saveManifest(folder, 'all.yaml', manifestOf(nodeObject(node), ...objects));
    const flags = ['--proxy-mode', 'iptables', '--iptables-variant', variant, '--iptables-sync-period', '1h'];
    const agent = await node.startAgent({ manifests: folder, flags: [...flags, '--localhost-nodeports'] });
    const answers = async () => {
      const outcome = await node.connect({ ip: '127.0.0.1', port: 30080 }, { timeoutMs: 1000 });
      return outcome.kind === 'answered';
    };
    const isBack = () => expect.poll(answers, { timeout: patient(10_000) }).toBe(true);
    await isBack();
    node.namespace.run('sh', '-ec', [`cd ${folder}`, save, 'nft flush ruleset', restore].filter(Boolean).join('; '));
    await isBack();
    await agent.stop();
  });
});

describe.each(MODES)('mode %s (%s)', (mode, flushes, flags) => {
  const node = createLab().addNode({ name: 'node-1' });
  const [web, client] = [node.addPod('web'), node.addPod('client')];
  let start: () => Promise<Agent>;
  let agent: Agent;

  const answers = async (ip: string) => {
    const outcome = await client.connect({ ip, port: 80, protocol: 'TCP' }, { timeoutMs: 1000 });
    return outcome.kind === 'answered';
  };
  const syncs = () => agent.logs().filter(({ msg }) => msg === 'Synced').length;
  const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  beforeAll(async () => {
    await web.serve({ port: TARGET });
    const manifests = createFolder('manifests').path;
    const services = (['IPv4', 'IPv6'] as const).flatMap((family) =>
      served(`shop/${family.toLowerCase()}`, VIP[family], [on(node, web.ip(family))]),
    );
    saveManifest(manifests, 'all.yaml', manifestOf(nodeObject(node), ...services));
    const period = ['--iptables-sync-period', '1h'];
    start = () => node.startAgent({ manifests, flags: ['--proxy-mode', mode, ...flags, ...period] });
    agent = await start();
  });
  afterAll(() => agent.stop());

  it.each(flushes)('rules are back at once after "%s", and are left alone then', async (flush) => {
    for (const ip of Object.values(VIP)) expect(await answers(ip)).toBe(true);
    const before = syncs();
    node.namespace.run('sh', '-ec', FLUSHES[flush]!.join('\n'));
    await expect.poll(syncs, { timeout: patient(10_000) }).toBeGreaterThanOrEqual(before + 2);
    for (const ip of Object.values(VIP)) await expect.poll(() => answers(ip), { timeout: patient(10_000) }).toBe(true);
    await rest(1000);
    const after = syncs();
    await rest(2000);
    expect(syncs()).toBe(after);
  });

  it('rules are back at once, too, after an agent that found them all at its start', async () => {
    await agent.stop();
    agent = await start();
    expect(await answers(VIP.IPv4)).toBe(true);
    node.namespace.run('sh', '-ec', FLUSHES[flushes[0]]!.join('\n'));
    for (const ip of Object.values(VIP)) await expect.poll(() => answers(ip), { timeout: patient(10_000) }).toBe(true);
  });

  it('rules of others that come and go are no reason to write', async () => {
    // What the last flush was a reason for.
    await rest(2000);
    const before = syncs();
    const rule = '-s 203.0.113.9 -j DROP';
    node.namespace.run('sh', '-ec', `iptables-nft -I FORWARD ${rule}; iptables-nft -D FORWARD ${rule}`);
    await rest(1000);
    expect(syncs()).toBe(before);
  });
});
