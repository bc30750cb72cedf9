import { expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import type { Drift } from '../../../core/index.ts';
import type { NetworkEvent } from '../../../netlink/route/index.ts';
import type { Logger } from '../../logger.ts';
import { LinkWatch } from './link-watch.ts';
import type { LinkReport, LinkTask } from './look-at-links.ts';

const ADDRESS: Drift = { object: 'bridge "cni0"', difference: 'changed', ours: ['address 10.244.1.1/24'] };
const PORT: Drift = { object: 'link "veth1"', difference: 'changed', theirs: ['down'], ours: ['up'] };

function world(mend: (kernel: { shared: Drift[]; ofPods: Drift[] }) => void) {
  const clock = new FakeClock();
  const kernel = { shared: [] as Drift[], ofPods: [] as Drift[], unreadable: false, looks: 0 };
  const told: string[] = [];
  const tell = (facts: object | string, message?: string) =>
    void told.push(message === undefined ? String(facts) : `${message} ${JSON.stringify(facts)}`);
  const logger = { warn: tell, info: tell, error: (_: object, message: string) => told.push(message) };
  const run = async ({ repair, onNode }: LinkTask): Promise<LinkReport> => {
    expect(onNode).toBe(true);
    kernel.looks++;
    if (kernel.unreadable) return { failure: 'EPERM' };
    if (repair) mend(kernel);
    const { shared, ofPods } = kernel;
    return { drifts: [...shared, ...ofPods], shared };
  };
  const changed = { tell: () => {}, renew: () => {} };
  const listenTo = (listener: (event: NetworkEvent) => void) => {
    const address = {} as Extract<NetworkEvent, { kind: 'address' }>['address'];
    changed.tell = () => listener({ kind: 'address', deleted: true, address });
    changed.renew = () => listener({ kind: 'address', deleted: false, address });
    return { close: () => void told.push('closed') };
  };
  const options = { dataDirs: [], run, watch: listenTo, clock, logger: logger as unknown as Logger };
  const watch = new LinkWatch(options);
  watch.start();
  const renew = () => changed.renew();
  return { clock, kernel, told, watch, tell: () => changed.tell(), renew };
}

it('mends what pods share when it differs for ten seconds, and not what is there for a moment', async () => {
  const { clock, kernel, told, watch, tell } = world((found) => {
    found.shared = [];
  });
  await clock.advance(30_000);
  kernel.shared = [ADDRESS];
  tell();
  await clock.advance(10_000);
  kernel.shared = [];
  await clock.advance(30_000);
  expect(told).toEqual([]);
  kernel.shared = [ADDRESS];
  tell();
  await clock.advance(10_999);
  expect(kernel.shared).toEqual([ADDRESS]);
  await clock.advance(1);
  expect(kernel.shared).toEqual([]);
  expect(told).toEqual([
    'What pods share on this node was not as they need it; it is mended {"differences":["bridge \\"cni0\\" (+ address 10.244.1.1/24)"]}',
  ]);
  await clock.advance(100_000);
  expect(told).toHaveLength(1);
  expect(watch.differences()).toEqual([]);
});

it('looks once in ten seconds however much changes, and finds within a minute what nobody tells', async () => {
  const { clock, kernel, told, watch, tell, renew } = world((found) => {
    found.shared = [];
  });
  await clock.advance(30_000);
  renew();
  await clock.advance(20_000);
  expect(kernel.looks).toBe(1);
  const looked = kernel.looks;
  for (let second = 0; second < 60; second++) {
    tell();
    await clock.advance(1000);
  }
  expect(kernel.looks - looked).toBe(6);
  await clock.advance(10_000);
  kernel.shared = [ADDRESS];
  await clock.advance(70_000);
  expect(kernel.shared).toEqual([]);
  watch.stop();
  expect(told.at(-1)).toBe('closed');
});

it('tells of ends of pods, and of what cannot be mended, once until all is in order', async () => {
  const { clock, kernel, told, watch } = world(() => {
    kernel.ofPods = [PORT];
  });
  kernel.shared = [ADDRESS];
  kernel.ofPods = [PORT];
  await clock.advance(100_000);
  expect(told).toEqual([
    'Interfaces of pods on this node were changed, and are left so: see `nodeplane diff` {"differences":["bridge \\"cni0\\" (+ address 10.244.1.1/24)","link \\"veth1\\" (- down, + up)"],"count":2}',
  ]);
  expect(watch.differences()).toEqual([
    'Interfaces of pods are not as their ADDs made them: 2 of them, the first is bridge "cni0" (+ address 10.244.1.1/24)',
  ]);
  kernel.shared = [];
  kernel.ofPods = [];
  await clock.advance(60_000);
  expect(told.slice(1)).toEqual(['The interfaces of pods on this node are in order again']);
  expect(watch.differences()).toEqual([]);
});

it('tells once why it cannot look, and looks again', async () => {
  const { clock, kernel, told } = world((found) => {
    found.shared = [];
  });
  kernel.unreadable = true;
  await clock.advance(100_000);
  expect(told).toEqual(['The bridge and interfaces of pods cannot be looked after']);
  kernel.unreadable = false;
  kernel.shared = [ADDRESS];
  await clock.advance(70_000);
  expect(kernel.shared).toEqual([]);
});
