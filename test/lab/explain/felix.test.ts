import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, type Pod, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, vethOf } from './faults.ts';
import { loadNeighbour } from './neighbours.ts';

// Policies of Calico find pods by the interface that rules see: each pod's own, where no bridge is in between.

const [VIP, OF_BRIDGE] = ['10.96.0.10', '10.96.0.11'];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, web2, client } = world;
const [plugin] = node.conflist.plugins;
const { bridge: _, hairpinMode: __, isDefaultGateway: ___, ...others } = plugin as Record<string, unknown>;
const routed = { ...node.conflist, plugins: [{ ...others, type: plugin!.type, mode: 'routed' }] };
const [server, stranger] = ['server', 'stranger'].map((name) => node.addPod(name, { conflist: routed }));

beforeAll(async () => {
  await server!.serve({ port: TARGET });
  await world.begin([
    ...served('shop/server', VIP, [on(node, server!.ip())]),
    ...served('shop/web', OF_BRIDGE, [on(node, web.ip())]),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

async function compare(from: Host, vip: string, works: boolean): Promise<void> {
  const [answer] = await world.askHere([{ destination: `${vip}:80`, source: from.ip() }]);
  expect(await answers(from, vip), `${from.name} to ${vip}: ${answer!.cause}`).toBe(works);
  expect(answer, answer!.cause).toMatchObject(
    works ? { verdict: 'works' } : { verdict: 'fails', code: 'foreign-drop' },
  );
}

/** For one pod, with FELIX_INTERFACEPREFIX=veth. */
function protect(pod: Pod): void {
  const names = { '-i cni+': '-i veth+', '-o cni+': '-o veth+', cni0: vethOf(node, pod) };
  faults.undo(loadNeighbour('calico', { world, program: 'iptables-nft', dns: VIP, names }));
}

it('a policy holds for a pod without a bridge', async () => {
  await compare(stranger!, VIP, true);
  protect(server!);
  await compare(client, VIP, true);
  await compare(stranger!, VIP, false);
});

it('none does for one behind a bridge', async () => {
  protect(web);
  await compare(client, OF_BRIDGE, true);
  await compare(web2, OF_BRIDGE, true);
});
