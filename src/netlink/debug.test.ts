import { expect, it } from 'vitest';
import { ack, FakeNetlink, frame } from '../../test/fakes/fake-netlink.ts';
import { printer, printing } from './debug.ts';
import { Netlink } from './netlink.ts';
import { deleteLink } from './route/link-change.ts';
import { NETLINK_ROUTE } from './uapi/netlink.ts';
import { NetlinkWords } from './words/index.ts';

const printed = (protocol: number, answers: (request: Parameters<typeof ack>[0]) => Uint8Array, secret = false) => {
  const lines: string[] = [];
  const fake = new FakeNetlink(([request]) => [answers(request!)]);
  const print = printer(protocol, { words: new NetlinkWords(), secret, write: (line) => void lines.push(line) });
  const transport = printing(fake, print);
  try {
    new Netlink(transport).execute(deleteLink({ index: 5 }));
  } catch (error) {
    lines.push(String((error as { code?: string }).code));
  }
  transport.close();
  expect(fake.closed).toBe(true);
  return lines;
};

const BODY = '00000000050000000000000000000000';

it('prints each message with its name, flags, number and bytes, and changes nothing', () => {
  expect(printed(NETLINK_ROUTE, (request) => frame(ack(request)))).toEqual([
    `netlink > RTM_DELLINK flags 0x5 seq 1 ${BODY}\n`,
    'netlink = ifi_index 5\n',
    // errno 0, then the header of the request (length 16: it was not echoed).
    'netlink < NLMSG_ERROR flags 0x100 seq 1 0000000010000000110005000100000067120000\n',
  ]);
});

it('shows no bytes of messages that hold keys', () => {
  expect(printed(NETLINK_ROUTE, (request) => frame(ack(request)), true)).toEqual([
    'netlink > RTM_DELLINK flags 0x5 seq 1 (16 bytes)\n',
    'netlink = ifi_index 5\n',
    'netlink < NLMSG_ERROR flags 0x100 seq 1 (20 bytes)\n',
  ]);
  expect(printed(9, () => Uint8Array.of(1, 2, 3), true)[1]).toMatch(/^netlink < malformed \(.*\) \(3 bytes\)\n$/);
});

it('prints the number of types it has no name for, and malformed datagrams whole', () => {
  expect(printed(9, () => Uint8Array.of(1, 2, 3))).toEqual([
    `netlink > type 17 flags 0x5 seq 1 ${BODY}\n`,
    expect.stringMatching(/^netlink < malformed \(.*3 bytes are left.*\) 010203\n$/),
    'ERR_NETLINK_DECODE',
  ]);
});
