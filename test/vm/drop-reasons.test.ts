import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  configure,
  type DropConfiguration,
  decodeConfiguration,
  dropRequest,
  watchDrops,
} from '../../src/netlink/drop-monitor/index.ts';
import { resolveFamily, withNetlink } from '../../src/netlink/index.ts';
import { NETLINK_GENERIC } from '../../src/netlink/uapi/index.ts';
import {
  NET_DM_ALERT_MODE_PACKET,
  NET_DM_ALERT_MODE_SUMMARY,
  NET_DM_GENL_NAME,
} from '../../src/netlink/uapi/net-dropmon.ts';
import { traced } from './traced.ts';

// Why the kernel dropped what is traced. It tells so in the machine's first namespace alone: the VM's own is the node here.

const [HERE, THERE, CLOSED] = ['10.77.0.1', '10.77.0.2', 4999];
const THEIRS: DropConfiguration = { mode: NET_DM_ALERT_MODE_PACKET, truncateTo: 200, queueLength: 500 };
const COUNTING: DropConfiguration = { ...THEIRS, mode: NET_DM_ALERT_MODE_SUMMARY };

const ip = (words: string) => execFileSync('ip', words.split(' '));

beforeAll(() => {
  ip('netns add endpoint');
  ip('link add to-endpoint type veth peer name eth0 netns endpoint');
  ip(`address add ${HERE}/24 dev to-endpoint`);
  ip('link set to-endpoint up');
  ip(`-n endpoint address add ${THERE}/24 dev eth0`);
  ip('-n endpoint link set eth0 up');
});

afterAll(() => {
  ip('netns del endpoint');
});

const ask = <T>(fn: (netlink: Parameters<Parameters<typeof withNetlink>[1]>[0], family: number) => T): T =>
  withNetlink(NETLINK_GENERIC, (netlink) => fn(netlink, resolveFamily(netlink, NET_DM_GENL_NAME)));
const configuration = () =>
  ask((netlink, family) => decodeConfiguration(netlink.query(dropRequest(family, 'NET_DM_CMD_CONFIG_GET'))));
/** Whoever has it on holds the module. */
const isOn = () =>
  existsSync('/sys/module/drop_monitor') && readFileSync('/sys/module/drop_monitor/refcnt', 'utf8').trim() !== '0';
const switchOn = (how: DropConfiguration) =>
  ask((netlink, family) => netlink.execute(configure(family, how), dropRequest(family, 'NET_DM_CMD_START')));
const switchOff = () => ask((netlink, family) => netlink.execute(dropRequest(family, 'NET_DM_CMD_STOP')));

afterEach(() => {
  if (isOn()) switchOff();
});

/** A datagram to a port on which nobody listens. */
async function send(): Promise<void> {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.send('x', CLOSED, THERE, () => resolve()));
  socket.close();
}
const trace = () => traced({ source: HERE, destination: `${THERE}:${CLOSED}`, protocol: 'udp', live: 10 }, send);

describe('a trace', () => {
  it('tells the reason, of packets in the namespace of a pod too, and leaves the monitor off and as it was', async () => {
    const before = configuration();
    const { flows, dropReasons } = await trace();
    expect(dropReasons).toBeNull();
    expect(flows).toMatchObject([{ fate: 'refused', kernelDrop: { reason: 'NO_SOCKET' } }]);
    expect(flows[0]!.kernelDrop!.place).toMatch(/^[a-z0-9_.]*udp[a-z0-9_.]*$/);
    expect(isOn()).toBe(false);
    expect(configuration()).toEqual(before);
  });

  it('listens to the monitor of somebody else, and leaves it on', async () => {
    switchOn(THEIRS);
    const { flows, dropReasons } = await trace();
    expect(dropReasons).toBeNull();
    expect(flows).toMatchObject([{ kernelDrop: { reason: 'NO_SOCKET' } }]);
    expect(isOn()).toBe(true);
    expect(configuration()).toEqual(THEIRS);
  });

  it('says so when somebody else has it count alone, and leaves it on', async () => {
    switchOn(COUNTING);
    const { flows, dropReasons } = await trace();
    expect(dropReasons).toContain('count drops by place');
    expect(flows).toMatchObject([{ fate: 'refused', kernelDrop: null }]);
    expect(isOn()).toBe(true);
    expect(configuration()).toEqual(COUNTING);
  });
});

it('what a killed trace has left on the next one switches off', () => {
  const killed = watchDrops(() => {});
  expect(isOn()).toBe(true);
  watchDrops(() => {}).close();
  expect(isOn()).toBe(false);
  expect(configuration()).toEqual({ mode: NET_DM_ALERT_MODE_SUMMARY, truncateTo: 0, queueLength: 1000 });
  // It was killed: it does not switch off what is off.
  expect(() => killed.close()).not.toThrow();
});
