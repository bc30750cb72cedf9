import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { PodMtu } from './pod-mtu.ts';

function world(pods: readonly { kind: string; alias: string; mtu: number }[] = []) {
  const clock = new FakeClock();
  const warnings: object[] = [];
  const state = { mtu: undefined as number | undefined, hasIpv6: false, pods };
  let listener = () => {};
  const podMtu = new PodMtu({
    source: {
      mtu: () => state.mtu,
      onMtuChange: (one) => {
        listener = one;
      },
    },
    network: 'nodeplane',
    hasIpv6: () => state.hasIpv6,
    clock,
    logger: { warn: (fields: object) => void warnings.push(fields) } as never,
    links: () => state.pods,
  });
  const become = (mtu: number) => {
    state.mtu = mtu;
    listener();
  };
  return { clock, warnings, state, podMtu, become };
}

it('is not known before the routes know it, and never less than IPv6 allows where pods have it', () => {
  const { podMtu, become, state } = world();
  expect(podMtu.value()).toBeUndefined();
  become(1200);
  expect(podMtu.value()).toBe(1200);
  state.hasIpv6 = true;
  expect(podMtu.value()).toBe(1280);
});

it('warns once of a change that both families tell, with how many pods keep another', async () => {
  const pods = [
    { kind: 'veth', alias: 'nodeplane/c1/eth0', mtu: 1430 },
    { kind: 'veth', alias: 'nodeplane/c2/eth0', mtu: 1500 },
    { kind: 'veth', alias: 'nodeplane/c3/eth0', mtu: 1330 },
    { kind: 'veth', alias: 'nodeplane-b/c4/eth0', mtu: 1500 },
    { kind: 'ifb', alias: 'nodeplane/c2/eth0', mtu: 1500 },
    { kind: 'veth', alias: '', mtu: 1500 },
  ];
  const { clock, warnings, become } = world(pods);
  become(1350);
  await clock.advance(900);
  become(1330);
  await clock.advance(900);
  expect(warnings).toEqual([]);
  await clock.advance(100);
  expect(warnings).toEqual([{ mtu: 1330, pods: 2, have: [1430, 1500] }]);
  become(1330);
  await clock.advance(10_000);
  expect(warnings).toHaveLength(1);
});

it('says nothing when no pod has another, nor after its end', async () => {
  const { clock, warnings, become, podMtu, state } = world([{ kind: 'veth', alias: 'nodeplane/c1/eth0', mtu: 1430 }]);
  become(1430);
  await clock.advance(2000);
  state.pods = [{ kind: 'veth', alias: 'nodeplane/c1/eth0', mtu: 1500 }];
  become(1330);
  podMtu.stop();
  become(1340);
  await clock.advance(2000);
  expect(warnings).toEqual([]);
});
