import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { createCluster, FAMILIES, wayTo } from './cluster.ts';

// A bridge is put over the interface that leads to the other nodes, as for guests of libvirt: the node's address moves to it.

afterAll(removeAll);

it.each(FAMILIES)(
  'routes and tunnel follow the node’s address to another interface (%s)',
  async (family) => {
    const cluster = await createCluster();
    const [node] = cluster.nodes;
    const [here, near, far] = cluster.pods;
    await cluster.start('--routes', 'auto');
    const reached = async () => [
      await cluster.ask(here, near, family),
      await cluster.ask(near, here, family),
      await cluster.ask(here, far, family),
    ];
    const all = [near, here, far].map(({ name }) => expect.stringContaining(`${name} saw `));
    await expect.poll(reached).toEqual(all);
    const { gateways } = cluster.lab.wire;
    const commands = [
      'ip link add br0 type bridge',
      'ip link set br0 address $(cat /sys/class/net/eth0/address) up',
      'ip link set eth0 master br0',
      'ip address flush dev eth0 scope global',
      'ip address add 192.168.50.1/24 dev br0',
      'ip address add fd00:50::1/64 dev br0 nodad',
      ...gateways.map((gateway) => `ip route replace default via ${gateway} dev br0`),
    ];
    node.namespace.run('sh', '-ec', commands.join('\n'));
    await expect.poll(() => wayTo(node, near, family), { timeout: patient(15_000) }).toBe('br0');
    await expect.poll(reached, { timeout: patient(15_000) }).toEqual(all);
    await cluster.stop();
  },
  patient(120_000),
);

it(
  'routes are there at once when the address that the Node object tells comes to the interface',
  async () => {
    const cluster = await createCluster();
    const [node] = cluster.nodes;
    const [here, near] = cluster.pods;
    await cluster.start('--routes', 'auto');
    const answered = `${near.name} saw ${here.ip('IPv4')}`;
    await expect.poll(() => cluster.ask(here, near, 'IPv4')).toBe(answered);
    const added = ['192.168.50.44', 'fd00:50::44'];
    cluster.tell(node, { ips: added });
    const isReady = async () => (await node.httpGet('http://127.0.0.1:10256/readyz')).status;
    await expect.poll(isReady, { timeout: patient(15_000) }).toBe(503);
    // It is tried again ever more seldom: after 1, 3, 7, 15 and 31 seconds.
    await delay(17_000);
    expect(await isReady()).toBe(503);
    for (const address of added) {
      node.namespace.run('ip', 'address', 'add', `${address}/${address.includes(':') ? 64 : 24}`, 'dev', 'eth0');
    }
    await expect.poll(isReady, { timeout: 8000 }).toBe(200);
    await cluster.stop();
  },
  patient(120_000),
);

it(
  'a Node in a network that comes to the interface is on the link at once, and nobody is said to have changed routes',
  async () => {
    const cluster = await createCluster();
    const [node, other] = cluster.nodes;
    const [here, near] = cluster.pods;
    const on = ({ namespace }: typeof node, action: 'add' | 'del', ...addresses: string[]) => {
      for (const address of addresses) namespace.run('ip', 'address', action, address, 'dev', 'eth0');
    };
    on(other, 'add', '192.168.70.2/24', 'fd00:70::2/64');
    const [agent] = await cluster.start('--routes', 'auto');
    cluster.tell(other, { ips: ['192.168.70.2', 'fd00:70::2'] });
    const ways = () => FAMILIES.map((family) => wayTo(node, near, family));
    await expect.poll(ways).toEqual(['nodeplane-v4', 'nodeplane-v6']);
    on(node, 'add', '192.168.70.1/24', 'fd00:70::1/64');
    await expect.poll(ways, { timeout: 8000 }).toEqual(['eth0', 'eth0']);
    for (const family of FAMILIES) {
      await expect
        .poll(() => cluster.ask(here, near, family), { timeout: patient(10_000) })
        .toMatch(`${near.name} saw `);
    }
    on(node, 'add', '192.168.70.9/24', 'fd00:70::9/64');
    on(node, 'del', '192.168.70.9/24', 'fd00:70::9/64', '192.168.70.1/24', 'fd00:70::1/64');
    await expect.poll(ways, { timeout: 8000 }).toEqual(['nodeplane-v4', 'nodeplane-v6']);
    const told = agent!.logs().filter(({ msg }) => String(msg).includes('Somebody changed our routes'));
    expect(told).toEqual([]);
    await cluster.stop();
  },
  patient(120_000),
);
