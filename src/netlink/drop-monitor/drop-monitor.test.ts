import { describe, expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../test/fakes/decoder-properties.ts';
import { ack, answer, FakeNetlink, frame, refuse } from '../../../test/fakes/fake-netlink.ts';
import { Netlink } from '../netlink.ts';
import { genlmsghdr } from '../uapi/genetlink.ts';
import { NET_DM_ATTRIBUTES, NET_DM_CMD } from '../uapi/net-dropmon.ts';
import { configure, DEFAULT_CONFIGURATION, type DropConfiguration, decodeConfiguration } from './configuration.ts';
import { decodeDrops } from './dropped-packet.ts';
import { OURS, switchOff, switchOn } from './switch.ts';

// By hand, from the layout in <linux/net_dropmon.h>; test/vm/drop-reasons.test.ts asks the kernel.

const FAMILY = 30;
const [EAGAIN, EBUSY] = [11, 16];
const THEIRS: DropConfiguration = { mode: 1, truncateTo: 0, queueLength: 500 };

/** A message of NET_DM: its header, struct genlmsghdr, attributes. */
const message = (cmd: string, attributes: string) => {
  const length = 20 + attributes.length / 2;
  const bytes = Buffer.from(`00000000${'1e00'}${'0000'}${'00000000'.repeat(2)}${cmd}020000${attributes}`, 'hex');
  bytes.writeUInt32LE(length, 0);
  return bytes;
};
/** `NO_SOCKET`, `udp_rcv+0x1/0x2`, ETH_P_IP, ORIGIN (which is not read), four bytes. */
const ALERT = message(
  '05',
  '06000e0000000000' +
    '140003007564705f7263762b3078312f30783200' +
    `0e0017004e4f5f534f434b4554000000` +
    '0600060000080000' +
    '08000700deadbeef',
);

describe('decodeDrops', () => {
  it('tells reason, place and packet', () => {
    const drop = { reason: 'NO_SOCKET', place: 'udp_rcv', etherType: 0x0800 };
    expect(decodeDrops(ALERT, FAMILY)).toMatchObject([drop]);
    expect(Buffer.from(decodeDrops(ALERT, FAMILY)[0]!.bytes).toString('hex')).toBe('deadbeef');
    expect(decodeDrops(Buffer.concat([ALERT, ALERT]), FAMILY)).toHaveLength(2);
  });

  it('passes over what is counted by place alone, and messages of others', () => {
    expect(decodeDrops(message('01', '0800070000000000'), FAMILY)).toEqual([]);
    expect(decodeDrops(ALERT, FAMILY + 1)).toEqual([]);
  });

  it('gives a value or ERR_NETLINK_DECODE for any bytes', () => {
    expectSafeDecoder((bytes) => decodeDrops(bytes, FAMILY), [ALERT]);
  });
});

it('writes a configuration as the kernel tells it', () => {
  const { payload } = configure(FAMILY, OURS);
  expect(Buffer.from(payload).toString('hex')).toBe(
    '02020000' + '0500010001000000' + '0800090077000000' + '08000b00d3000000',
  );
  expect(decodeConfiguration(payload)).toEqual(OURS);
});

/** What net/core/drop_monitor.c does with its settings. */
class Monitor {
  isOn: boolean;
  configuration: DropConfiguration;
  readonly netlink: Netlink;

  constructor(isOn: boolean, configuration: DropConfiguration) {
    [this.isOn, this.configuration] = [isOn, configuration];
    this.netlink = new Netlink(
      new FakeNetlink((requests) => [
        frame(
          ...requests.map((request) => {
            const { cmd } = genlmsghdr.decode(request.payload);
            if (cmd === NET_DM_CMD.NET_DM_CMD_CONFIG_GET) {
              return answer(request, FAMILY, configure(FAMILY, this.configuration).payload);
            }
            const errno = this.#take(cmd, request.payload);
            return errno === 0 ? ack(request) : refuse(request, errno);
          }),
        ),
      ]),
    );
  }

  #take(cmd: number, payload: Uint8Array): number {
    if (cmd === NET_DM_CMD.NET_DM_CMD_CONFIG) {
      if (this.isOn) return EBUSY;
      expect(NET_DM_ATTRIBUTES.decode(payload, genlmsghdr.size).unknown).toEqual([]);
      this.configuration = decodeConfiguration(payload);
      return 0;
    }
    if (cmd === NET_DM_CMD.NET_DM_CMD_START && this.isOn) return EAGAIN;
    this.isOn = cmd === NET_DM_CMD.NET_DM_CMD_START;
    return 0;
  }
}

describe('a monitor', () => {
  it.each([
    ['that is off is switched on, and off again with the settings it had', false, THEIRS, THEIRS],
    ['that somebody killed has left on is taken over', true, OURS, DEFAULT_CONFIGURATION],
  ])('%s', (_, isOn, configuration, after) => {
    const monitor = new Monitor(isOn, configuration);
    const before = switchOn(monitor.netlink, FAMILY);
    expect(monitor).toMatchObject({ isOn: true, configuration: OURS });
    switchOff(monitor.netlink, FAMILY, before!);
    expect(monitor).toMatchObject({ isOn: false, configuration: after });
  });

  it('of somebody else is listened to, or is no use', () => {
    const monitor = new Monitor(true, THEIRS);
    expect(switchOn(monitor.netlink, FAMILY)).toBeUndefined();
    expect(monitor).toMatchObject({ isOn: true, configuration: THEIRS });
    const counting = new Monitor(true, { ...THEIRS, mode: 0 });
    expect(() => switchOn(counting.netlink, FAMILY)).toThrow(expect.objectContaining({ errnoName: 'EBUSY' }));
    expect(counting.isOn).toBe(true);
  });
});
