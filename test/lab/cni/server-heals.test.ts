import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Agent, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { reaches } from './fixture.ts';
import { createLinkWorld, LONG_MS } from './link-world.ts';

// What pods share is put right by the agent alone; what was done to one pod is told, and left as it is.

const { served, node, diff, addPod, delPod, ip } = createLinkWorld();
let agent: Agent;

beforeAll(async () => {
  agent = await served.startAgent();
}, LONG_MS);
afterAll(removeAll);

const lines = (part: string) => agent.logs().filter(({ msg }) => String(msg).includes(part));
const problems = async () => (await served.node.httpGet('http://127.0.0.1:10249/status?format=json')).body;

it.each([
  ['the addresses of the bridge are flushed', () => ip('address', 'flush', 'dev', 'cni0', 'scope', 'global')],
  ['the bridge is deleted', () => ip('link', 'del', 'cni0')],
])(
  '%s: pods are reached again, and the log says what was mended',
  async (_, harm) => {
    const [pod, other] = [await addPod(), await addPod()];
    const before = lines('it is mended').length;
    harm();
    expect(reaches(node, pod.ips[0]!)).toBe(false);
    await expect.poll(() => lines('it is mended').length, { timeout: patient(60_000), interval: 500 }).toBe(before + 1);
    expect(JSON.stringify(lines('it is mended').at(-1))).toContain('cni0');
    for (const [i, address] of pod.ips.entries()) {
      expect(reaches(node, address), address).toBe(true);
      expect(reaches(pod.namespace, other.ips[i]!), `pod to ${other.ips[i]}`).toBe(true);
    }
    expect(await diff()).toEqual({ status: 0, text: '' });
    await delPod(pod);
    await delPod(other);
  },
  LONG_MS,
);

it(
  'the port of one pod is taken down: told once, also by status, until it is up again',
  async () => {
    const pod = await addPod();
    ip('link', 'set', pod.link, 'down');
    await expect.poll(problems, { timeout: patient(100_000), interval: 500 }).toContain(pod.link);
    expect(await problems()).toMatch(/Interfaces of pods are not as their ADDs made them: link .*- down, \+ up/);
    expect(lines('are left so')).toHaveLength(1);
    expect(ip('link', 'show', pod.link)).toContain('state DOWN');
    expect(await diff('--repair')).toEqual({ status: 0, text: '' });
    await expect.poll(problems, { timeout: patient(100_000), interval: 500 }).not.toContain(pod.link);
    expect(lines('are in order again')).toHaveLength(1);
    await delPod(pod);
  },
  LONG_MS,
);

it.each([
  ['their routes are flushed', 'ip route flush proto static; ip -6 route flush proto static'],
  ['IPv6 is switched off and on again', 'for off in 1 0; do echo $off >/proc/sys/net/ipv6/conf/all/disable_ipv6; done'],
])(
  'routed pods, %s: they are reached again; what is done to the route of one alone is left',
  async (_, harm) => {
    const [pod, other] = [await addPod({ mode: 'routed' }), await addPod({ mode: 'routed' })];
    const unreached = () =>
      pod.ips.flatMap((address, i) => [
        ...(reaches(node, address) ? [] : [`node to ${address}`]),
        ...(reaches(other.namespace, address) ? [] : [`pod to ${address}`]),
        ...(reaches(pod.namespace, other.ips[i]!) ? [] : [`${address} to pod`]),
      ]);
    expect(unreached()).toEqual([]);
    node.run('sh', '-ec', harm);
    expect(unreached()).not.toEqual([]);
    await expect.poll(unreached, { timeout: patient(100_000), interval: 1000 }).toEqual([]);
    expect(await diff()).toEqual({ status: 0, text: '' });
    ip('route', 'del', pod.ips[0]!);
    await expect.poll(problems, { timeout: patient(100_000), interval: 500 }).toContain(`+ route ${pod.ips[0]}`);
    expect(reaches(node, pod.ips[0]!)).toBe(false);
    await delPod(pod);
    await delPod(other);
  },
  patient(240_000),
);
