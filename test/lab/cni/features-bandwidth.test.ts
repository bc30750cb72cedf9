import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { own, removeAll } from '../namespace.ts';
import { createFeatureWorld, type FeaturePod, type FeatureWorld } from './feature-world.ts';

/** Bits per second, far below what the machine can do. */
const RATE = 20e6;
/** Bits: so little that a measurement of seconds does not notice it. */
const BURST = 400e3;

let world: FeatureWorld;
const servers: ChildProcess[] = [];

beforeAll(() => {
  world = createFeatureWorld();
});

afterEach(() => {
  for (const server of servers.splice(0)) server.kill();
});

afterAll(removeAll);

/** Bits per second that arrive, between the node and a pod. */
async function measure(pod: FeaturePod, direction: 'to the pod' | 'from the pod', seconds = 2): Promise<number> {
  const server = spawn('ip', ['netns', 'exec', pod.namespace.name, 'iperf3', '-s', '-1'], { stdio: 'ignore' });
  own(() => void server.kill());
  servers.push(server);
  const client = ['-c', pod.ip(), '-t', `${seconds}`, '-O', '1', '-J', ...(direction === 'from the pod' ? ['-R'] : [])];
  let answer = '';
  await expect
    .poll(() => {
      const command = `iperf3 ${client.join(' ')} || true`;
      answer = world.node.namespace.run('bash', '-c', command);
      return answer;
    })
    .toContain('sum_received');
  return JSON.parse(answer).end.sum_received.bits_per_second;
}

function ifbs(): string[] {
  const links = JSON.parse(world.node.namespace.run('ip', '-j', '-d', 'link')) as {
    ifname: string;
    linkinfo?: { info_kind?: string };
  }[];
  return links.filter(({ linkinfo }) => linkinfo?.info_kind === 'ifb').map(({ ifname }) => ifname);
}

describe('bandwidth', () => {
  it.each(['to the pod', 'from the pod'] as const)('is what was asked for, %s', async (direction) => {
    const [mine, other] = direction === 'to the pod' ? ['ingress', 'egress'] : ['egress', 'ingress'];
    const limits = {
      runtimeConfig: {
        // As containerd writes it; the other direction may have a hundred times as much.
        bandwidth: {
          [`${mine[0]!.toUpperCase()}${mine.slice(1)}Rate`]: RATE,
          [`${mine}Burst`]: BURST,
          [`${other}Rate`]: RATE * 100,
          [`${other}Burst`]: 2 ** 32 - 1,
        },
      },
    };
    const pod = await world.addPod('limited', limits);
    const ratio = (await measure(pod, direction)) / RATE;
    expect(ratio).toBeGreaterThan(0.6);
    expect(ratio).toBeLessThan(1.2);
    await world.del(pod);
  });

  it('is unlimited where nothing was asked for', async () => {
    const pod = await world.addPod('half', { egressRate: RATE, egressBurst: BURST });
    expect((await measure(pod, 'to the pod', 1)) / RATE).toBeGreaterThan(3);
    await world.del(pod);
  });

  it('holds although root in the pod removes every qdisc it can see', async () => {
    const pod = await world.addPod('rebel', { egressRate: RATE, egressBurst: BURST });
    pod.namespace.run('bash', '-c', 'tc qdisc replace dev eth0 root pfifo; tc qdisc del dev eth0 root; true');
    expect((await measure(pod, 'from the pod')) / RATE).toBeLessThan(1.2);
    await world.del(pod);
  });

  it('lists the device it needs in the result, and DEL removes it, also when the pod is gone', async () => {
    const limits = { egressRate: RATE, egressBurst: BURST };
    const pod = await world.addPod('pod', limits);
    const [ifb] = ifbs();
    expect(pod.result.interfaces?.map(({ name, sandbox }) => [name, sandbox !== undefined])).toEqual([
      ['cni0', false],
      [expect.stringMatching(/^veth/), false],
      ['eth0', true],
      [ifb, false],
    ]);
    expect(pod.result.ips?.every((ip) => ip.interface === 2)).toBe(true);
    pod.namespace.remove();
    await world.del(pod);
    expect(ifbs()).toEqual([]);
    await world.del(pod);
  });

  it('is checked, and collected by GC', async () => {
    const limits = { ingressRate: RATE, ingressBurst: BURST, egressRate: RATE, egressBurst: BURST };
    const pod = await world.addPod('pod', limits);
    const check = () => world.call('CHECK', pod.namespace, { ...limits, prevResult: pod.result });
    expect(await check()).toMatchObject({ status: 0 });
    const [ifb] = ifbs();
    const veth = pod.result.interfaces![1]!.name;
    const { namespace } = world.node;
    namespace.run(
      'tc',
      'qdisc',
      'replace',
      'dev',
      veth,
      'root',
      'tbf',
      ...'rate 1mbit burst 4000 limit 9000'.split(' '),
    );
    expect((await check()).json?.msg).toContain(`Device "${veth}" limits what the pod receives to 125000 bytes/s`);
    namespace.run('tc', 'qdisc', 'del', 'dev', veth, 'ingress');
    expect((await check()).json?.msg).toContain(`does not pass what the pod sends through "${ifb}"`);
    namespace.run('ip', 'link', 'del', veth);
    expect(ifbs()).toEqual([ifb]);
    expect(await world.call('GC', pod.namespace, { 'cni.dev/valid-attachments': [] })).toMatchObject({ status: 0 });
    expect(ifbs()).toEqual([]);
  });

  it.each([
    [{ ingressRate: 1000 }, 'ingressRate'],
    [{ egressBurst: 1000 }, 'egressBurst'],
    [{ ingressRate: -1, ingressBurst: 1 }, 'ingressRate'],
  ])('refuses %o', async (limits, key) => {
    const { namespace } = await world.addPod('pod');
    await world.del(namespace);
    const outcome = await world.call('ADD', namespace, limits);
    expect(outcome.json).toMatchObject({ code: 7, msg: expect.stringContaining(`Cannot use ${key}`) });
  });
});
