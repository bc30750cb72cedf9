import { expect, it } from 'vitest';
import { answer, FakeNetlink, frame, refuse } from '../../../test/fakes/fake-netlink.ts';
import { Netlink } from '../../netlink/index.ts';
import { RTM_GETLINK } from '../../netlink/uapi/index.ts';
import { linkFacts } from '../../sys/index.ts';
import { UndoStack } from '../link/undo.ts';
import type { InterfaceName } from '../protocol/environment.ts';
import { createBridge, readBridge } from './bridge.ts';

const ENODEV = 19;

/** The one link that every machine has, as the kernel answers RTM_GETLINK for it, with another MTU when told. */
function loopback(mtu?: number): Buffer {
  const facts = linkFacts('lo')!;
  const attributes: readonly (readonly [type: number, value: Buffer])[] = [
    [1, Buffer.from(facts.address)],
    [3, Buffer.from('lo\0')],
    [4, Buffer.from(Uint32Array.of(mtu ?? facts.mtu).buffer)],
  ];
  const header = Buffer.alloc(16);
  header.writeInt32LE(facts.index, 4);
  header.writeUInt32LE(facts.flags, 8);
  const encoded = attributes.map(([type, value]) => {
    const bytes = Buffer.alloc(4 + Math.ceil(value.length / 4) * 4);
    bytes.writeUInt16LE(4 + value.length, 0);
    bytes.writeUInt16LE(type, 2);
    value.copy(bytes, 4);
    return bytes;
  });
  return Buffer.concat([header, ...encoded]);
}

/** How often the link is asked for when it is read twice. */
function asked(mtu: number | undefined, vlanFiltering: boolean): number {
  let questions = 0;
  const netlink = new Netlink(
    new FakeNetlink(([request]) => {
      const isQuestion = request!.type === RTM_GETLINK;
      if (isQuestion) questions++;
      return [frame(isQuestion ? answer(request!, 16, loopback(mtu)) : answer(request!, 3, Buffer.alloc(4)))];
    }),
  );
  const read = () => readBridge(netlink, { name: 'lo', vlanFiltering }).link!.index;
  expect([read(), read()]).toEqual([1, 1]);
  return questions;
}

it('asks for a link again when it has changed since, or when more must be known than can be asked without a lock', () => {
  expect(asked(1, false)).toBe(2);
  // The first one finds the other MTU.
  expect(asked(undefined, false)).toBe(1);
  expect(asked(undefined, false)).toBe(0);
  expect(asked(undefined, true)).toBe(2);
});

it('has words for a kernel whose bridges have no VLANs', () => {
  const EOPNOTSUPP = 95;
  const netlink = new Netlink(new FakeNetlink(([request]) => [frame(refuse(request!, EOPNOTSUPP))]));
  const make = (vlanFiltering: boolean) => () =>
    createBridge(netlink, { name: 'br0' as InterfaceName, mac: new Uint8Array(6), vlanFiltering }, new UndoStack());
  expect(make(true)).toThrow('"br0" cannot have VLANs ("vlan", "vlanTrunk"): this kernel lacks CONFIG_BRIDGE_VLAN');
  expect(make(false)).toThrow('RTM_NEWLINK bridge "br0": operation not supported');
});

it('takes a bridge for none that goes before its addresses are read', () => {
  const netlink = new Netlink(
    new FakeNetlink(([request]) => [
      frame(request!.type === RTM_GETLINK ? answer(request!, 16, loopback()) : refuse(request!, ENODEV)),
    ]),
  );
  expect(readBridge(netlink, { name: 'lo', vlanFiltering: true })).toEqual({ link: undefined, addresses: [] });
});
