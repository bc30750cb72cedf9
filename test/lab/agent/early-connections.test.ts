import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../src/kube/index.ts';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { on, served, TARGET } from '../explain/explain-world.ts';
import { type Agent, createLab, removeAll } from '../lab.ts';
import { createFolder } from '../namespace.ts';
import { patient } from '../patience.ts';

// Connections whose first packet went where nobody answers: their client's kernel sends it again after 1, 3, 7, 15 s and so on, and
// conntrack leads it there each time. Every one of them has to get through once there is an endpoint, by the same socket.

const MODES = [
  ['nftables', [], 'nft delete table ip nodeplane; nft delete table ip6 nodeplane'],
  ['iptables', ['--iptables-variant', 'nft'], 'iptables-nft -t nat -F; ip6tables-nft -t nat -F'],
  [
    'iptables',
    // The kernel does not tell it that rules are gone.
    ['--iptables-variant', 'legacy', '--iptables-sync-period', '2s'],
    'iptables-legacy -t nat -F; ip6tables-legacy -t nat -F',
  ],
] as const;
const FAMILIES = ['IPv4', 'IPv6'] as const;
/** Far enough for the packet to have been lost. */
const AFTER_LOSS_MS = 300;

afterAll(removeAll);

describe.each(MODES)('mode %s %s', (mode, flags, takeRules) => {
  const node = createLab().addNode({ name: 'node-1' });
  const [web, client] = [node.addPod('web'), node.addPod('client')];
  const manifests = createFolder('manifests').path;
  const vip = { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' };
  /** Behind the router, which drops what it does not know. */
  const gone = { IPv4: '203.0.113.9', IPv6: '2001:db8:9::9' };
  let agent: Agent;

  const serve = (addresses: Record<'IPv4' | 'IPv6', string> | undefined) => {
    const services: KubeObject[] = addresses
      ? FAMILIES.flatMap((family) => served(`shop/${family.toLowerCase()}`, vip[family], [on(node, addresses[family])]))
      : [];
    saveManifest(manifests, 'all.yaml', manifestOf(nodeObject(node), ...services));
  };
  const here = () => ({ IPv4: web.ip('IPv4'), IPv6: web.ip('IPv6') });
  const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  /** Of each family, how a connection ended that was begun before `change`. */
  const beginBefore = async (change: () => void) => {
    const begun = FAMILIES.map((family) =>
      client.connect({ ip: vip[family], port: 80, protocol: 'TCP' }, { timeoutMs: patient(25_000) }),
    );
    await rest(AFTER_LOSS_MS);
    change();
    return (await Promise.all(begun)).map(({ kind }) => kind);
  };
  const untilBoth = async (kind: string) => {
    for (const ip of Object.values(vip))
      await expect.poll(async () => (await client.connect({ ip, port: 80 }, { timeoutMs: 200 })).kind).toBe(kind);
  };
  const bothAnswered = ['answered', 'answered'];

  beforeAll(async () => {
    await web.serve({ port: TARGET });
    serve(undefined);
    agent = await node.startAgent({ manifests, flags: ['--proxy-mode', mode, ...flags] });
  });
  afterAll(() => agent.stop());

  it('finds a Service that comes later', async () => {
    expect(await beginBefore(() => serve(here()))).toEqual(bothAnswered);
  });

  it('leaves an endpoint that answers nobody, once that is none any more', async () => {
    serve(gone);
    await untilBoth('timeout');
    expect(await beginBefore(() => serve(here()))).toEqual(bothAnswered);
  });

  it('hears the refusal when the last endpoint goes', async () => {
    serve(gone);
    await untilBoth('timeout');
    const empty = FAMILIES.flatMap((family) => served(`shop/${family.toLowerCase()}`, vip[family], []));
    const serveNobody = () => saveManifest(manifests, 'all.yaml', manifestOf(nodeObject(node), ...empty));
    expect(await beginBefore(serveNobody)).toEqual(['refused', 'refused']);
  });

  it('finds a Service whose rules others took away', async () => {
    serve(here());
    await untilBoth('answered');
    process.kill(agent.pid, 'SIGSTOP');
    node.namespace.run('sh', '-ec', takeRules);
    expect(await beginBefore(() => process.kill(agent.pid, 'SIGCONT'))).toEqual(bothAnswered);
  });

  it('leaves connections alone that somebody answered', async () => {
    serve(here());
    await untilBoth('answered');
    const held = await client.hold({ ip: vip.IPv4, port: 80 });
    serve(gone);
    await rest(3000);
    expect(await held.echo()).toMatchObject({ kind: 'answered' });
    await held.close();
  });
});
