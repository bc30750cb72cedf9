import { expect, it } from 'vitest';
import { answer, FakeNetlink, frame } from '../../../test/fakes/fake-netlink.ts';
import { Netlink } from '../../netlink/index.ts';
import { waitForCarrier } from './host-link.ts';

const IF_OPER_LOWERLAYERDOWN = 3;
const IF_OPER_UP = 6;
const LINK = { index: 7, name: 'veth0' };

/** struct ifinfomsg, IFLA_IFNAME and IFLA_OPERSTATE of link 7, as the kernel answers RTM_GETLINK. */
function link(operState: number): Buffer {
  const bytes = Buffer.alloc(16 + 12 + 8);
  bytes.writeInt32LE(LINK.index, 4);
  bytes.writeUInt16LE(10, 16);
  bytes.writeUInt16LE(3, 18);
  bytes.write(LINK.name, 20, 'latin1');
  bytes.writeUInt16LE(5, 28);
  bytes.writeUInt16LE(16, 30);
  bytes.writeUInt8(operState, 32);
  return bytes;
}

function waitWith(states: () => number): number[] {
  const fake = new FakeNetlink(([request]) => [frame(answer(request!, 16, link(states())))]);
  const pauses: number[] = [];
  waitForCarrier(new Netlink(fake), LINK, (ms) => void pauses.push(ms));
  return pauses;
}

it('waits until the kernel has told the bridge of the carrier, asking less and less often', () => {
  const states = [IF_OPER_LOWERLAYERDOWN, IF_OPER_LOWERLAYERDOWN, IF_OPER_LOWERLAYERDOWN, IF_OPER_UP];
  expect(waitWith(() => states.shift()!)).toEqual([1, 2, 4]);
  expect(states).toEqual([]);
});

it('gives up on a carrier that does not come, in words', () => {
  expect(() => waitWith(() => IF_OPER_LOWERLAYERDOWN)).toThrow('Link "veth0" got no carrier within 2000 ms');
});
