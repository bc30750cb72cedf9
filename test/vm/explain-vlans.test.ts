import { afterAll, beforeAll, expect, it } from 'vitest';
import { ExplainWorld, on, served, TARGET } from '../lab/explain/explain-world.ts';
import { answers, Faults, vethOf } from '../lab/explain/faults.ts';
import { type Pod, removeAll } from '../lab/lab.ts';

// What VLANs of a bridge keep apart. The kernel of the lab has a bridge that does not know them.

const VIP = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
const [WEB, CLIENT] = [web.ip(), client.ip()];

beforeAll(() => world.begin(served('shop/web', VIP, [on(node, WEB)])), 600_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const bridge = (...words: string[]) =>
  void node.namespace.run('bridge', 'vlan', ...words.flatMap((one) => one.split(' ')));
const member = (at: string, words: string) => {
  bridge(`del dev ${at} vid 1`);
  faults.undo(() => bridge(`add dev ${at} vid 1 pvid untagged`));
  bridge(`add dev ${at} ${words}`);
  faults.undo(() => bridge(`del dev ${at} ${words.split(' ').slice(0, 2).join(' ')}`));
};
const alone = (pod: Pod) => member(vethOf(node, pod), 'vid 10 pvid untagged');
/** As the CNI plugin makes it for "vlan". */
const tagged = () => {
  for (const pod of [web, client]) alone(pod);
  bridge('add dev cni0 vid 10 self');
  faults.undo(() => bridge('del dev cni0 vid 10 self'));
  const gateway = node.namespace.run('ip', '-4', '-o', 'addr', 'show', 'cni0').split(/\s+/)[3]!;
  faults.ip(`addr del ${gateway} dev cni0`, `addr add ${gateway} dev cni0`);
  faults.ip('link add link cni0 name cni0.10 type vlan id 10', 'link del cni0.10');
  node.namespace.run('ip', 'link', 'set', 'cni0.10', 'up');
  node.namespace.run('ip', 'addr', 'add', gateway, 'dev', 'cni0.10');
};

it.each<[string, () => void]>([
  ['one VLAN for all', () => {}],
  ['an endpoint in another VLAN', () => alone(web)],
  [
    'two pods in another VLAN than the node',
    () => {
      alone(web);
      alone(client);
    },
  ],
  ['an endpoint that gets tags', () => member(vethOf(node, web), 'vid 1 pvid')],
  ['an endpoint whose frames are of no VLAN', () => member(vethOf(node, web), 'vid 1 untagged')],
  ['a node that is in the VLAN by a link of it', tagged],
])('%s: what is told is what connections do', async (_, begin) => {
  faults.ip('link set cni0 type bridge vlan_filtering 1', 'link set cni0 type bridge vlan_filtering 0');
  begin();
  for (const [host, source, ip, at] of [
    [client, CLIENT, WEB, TARGET],
    [client, CLIENT, VIP, 80],
    [node, 'node', VIP, 80],
  ] as const) {
    for (const { namespace } of [node, web, client]) namespace.run('ip', 'neigh', 'flush', 'all');
    node.namespace.run('conntrack', '-F');
    const verdict = (await answers(host, ip, at)) ? 'works' : 'fails';
    const answer = await world.ask(`${ip}:${at}`, source);
    expect(answer.verdict, `${source} to ${ip}: ${answer.cause}`).toBe(verdict);
  }
});
