import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { isExists, isNotFound, KernelError } from '../../../src/core/index.ts';
import type { Netlink } from '../../../src/netlink/index.ts';
import {
  deleteLink,
  getLink,
  getLinkTraffic,
  listLinks,
  newBridge,
  newVeth,
  setBridgePort,
  setLink,
} from '../../../src/netlink/route/index.ts';
import { openNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { mac, openIn, witness } from './witness.ts';

let node: TestNamespace;
let pod: TestNamespace;
let netlink: Netlink;
let inPod: Netlink;

beforeEach(() => {
  node = createNamespace('node');
  pod = createNamespace('pod');
  netlink = openIn(node);
  inPod = openIn(pod);
  return () => {
    netlink.close();
    inPod.close();
    removeAll();
  };
});

afterAll(removeAll);

/** A veth on the node, its peer `eth0` in the pod. */
function connect(name: string, options: { master?: number; up?: boolean } = {}): void {
  const target = openNetns(pod.path);
  try {
    const peer = { name: 'eth0', mac: mac(3).bytes, mtu: 1400, netnsFd: target.fd };
    netlink.execute(newVeth({ name, mac: mac(2).bytes, mtu: 1400, ...options, peer }));
  } finally {
    target.close();
  }
}

function failure(action: () => void): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error('It should have failed');
}

describe('a bridge', () => {
  it('has MAC and MTU as asked, is up, and does without spanning tree', () => {
    netlink.execute(newBridge({ name: 'cni0', mac: mac(1).bytes, mtu: 1450, up: true }));
    expect(getLink(netlink, { name: 'cni0' })).toMatchObject({
      name: 'cni0',
      kind: 'bridge',
      up: true,
      mtu: 1450,
      address: mac(1).bytes,
      master: 0,
      peerIndex: 0,
      bridgePort: undefined,
    });
    const [seen] = witness(node, 'ip', 'link', 'show', 'cni0');
    expect(seen).toMatchObject({ mtu: 1450, address: mac(1).text, linkinfo: { info_kind: 'bridge' } });
    expect(seen.flags).toContain('UP');
    expect(seen.linkinfo.info_data).toMatchObject({ forward_delay: 0, stp_state: 0 });
  });
});

describe('a veth', () => {
  it('is a port of the bridge at one end and born in the pod at the other', () => {
    netlink.execute(newBridge({ name: 'cni0', mac: mac(1).bytes, up: true }));
    const bridge = getLink(netlink, { name: 'cni0' })!;
    connect('veth1a2b', { master: bridge.index, up: true });

    const host = getLink(netlink, { name: 'veth1a2b' })!;
    const peer = getLink(inPod, { name: 'eth0' })!;
    expect(host).toMatchObject({ kind: 'veth', up: true, mtu: 1400, master: bridge.index, peerIndex: peer.index });
    expect(host.address).toEqual(mac(2).bytes);
    expect(host.peerNetnsId).toBeTypeOf('number');
    expect(peer).toMatchObject({ kind: 'veth', up: false, mtu: 1400, master: 0, peerIndex: host.index });
    expect(peer.address).toEqual(mac(3).bytes);

    const [seen] = witness(node, 'ip', 'link', 'show', 'veth1a2b');
    expect(seen).toMatchObject({ ifindex: host.index, mtu: 1400, master: 'cni0', address: mac(2).text });
    const [seenInPod] = witness(pod, 'ip', 'link', 'show', 'eth0');
    expect(seenInPod).toMatchObject({ ifindex: peer.index, mtu: 1400, address: mac(3).text, operstate: 'DOWN' });
    expect(witness(node, 'ip', 'link').map((link) => link.ifname)).toEqual(['lo', 'cni0', 'veth1a2b']);
  });

  it('gets port flags and an alias afterwards, in one datagram', () => {
    netlink.execute(newBridge({ name: 'cni0', mac: mac(1).bytes, up: true }));
    connect('veth1a2b', { master: getLink(netlink, { name: 'cni0' })!.index, up: true });
    const { index, bridgePort } = getLink(netlink, { name: 'veth1a2b' })!;
    expect(bridgePort).toMatchObject({ hairpin: false, isolated: false, learning: true, unicastFlood: true });

    netlink.execute(
      setBridgePort(index, {
        hairpin: true,
        isolated: true,
        learning: false,
        unicastFlood: false,
        multicastFlood: false,
      }),
      setBridgePort(index, { broadcastFlood: false, proxyArp: true, neighbourSuppress: true }),
      setLink(index, { alias: 'default/web-1' }),
    );
    expect(getLink(netlink, { index })).toMatchObject({
      alias: 'default/web-1',
      bridgePort: {
        hairpin: true,
        isolated: true,
        learning: false,
        unicastFlood: false,
        multicastFlood: false,
        broadcastFlood: false,
        proxyArp: true,
        neighbourSuppress: true,
      },
    });
    const [seen] = witness(node, 'ip', 'link', 'show', 'veth1a2b');
    expect(seen.ifalias).toBe('default/web-1');
    expect(seen.linkinfo.info_slave_data).toMatchObject({
      hairpin: true,
      isolated: true,
      learning: false,
      flood: false,
      mcast_flood: false,
      bcast_flood: false,
      proxy_arp: true,
      neigh_suppress: true,
    });

    netlink.execute(setBridgePort(index, { hairpin: false }), setLink(index, { alias: '' }));
    expect(getLink(netlink, { index })).toMatchObject({ alias: '', bridgePort: { hairpin: false, isolated: true } });
    expect(witness(node, 'ip', 'link', 'show', 'veth1a2b')[0]).not.toHaveProperty('ifalias');
  });

  it('is changed, renamed, moved and deleted', () => {
    connect('veth1a2b');
    const { index } = getLink(netlink, { name: 'veth1a2b' })!;
    netlink.execute(newBridge({ name: 'cni0', mac: mac(1).bytes }));
    const master = getLink(netlink, { name: 'cni0' })!.index;

    netlink.execute(setLink(index, { name: 'renamed', mtu: 1300, mac: mac(9).bytes, master, up: true }));
    expect(witness(node, 'ip', 'link', 'show', 'renamed')[0]).toMatchObject({
      ifindex: index,
      mtu: 1300,
      address: mac(9).text,
      master: 'cni0',
      flags: expect.arrayContaining(['UP']),
    });
    netlink.execute(setLink(index, { master: 0, up: false }));
    expect(getLink(netlink, { index })).toMatchObject({ name: 'renamed', master: 0, up: false });

    const target = openNetns(pod.path);
    netlink.execute(setLink(index, { netnsFd: target.fd, name: 'eth1' }));
    target.close();
    expect(getLink(netlink, { name: 'renamed' })).toBeUndefined();
    expect(witness(pod, 'ip', 'link', 'show', 'eth1')[0]).toMatchObject({ mtu: 1300, address: mac(9).text });

    inPod.execute(deleteLink({ name: 'eth1' }));
    expect(listLinks(inPod).map((link) => link.name)).toEqual(['lo']);
    netlink.execute(deleteLink({ index: master }));
    expect(witness(node, 'ip', 'link').map((link) => link.ifname)).toEqual(['lo']);
  });
});

describe('the list of links', () => {
  it('is that of iproute2', () => {
    connect('veth1a2b', { up: true });
    netlink.execute(newBridge({ name: 'cni0', mac: mac(1).bytes }));
    const ours = listLinks(netlink).map(({ index, name, mtu, kind, up }) => ({ index, name, mtu, kind, up }));
    const seen = witness(node, 'ip', 'link').map((link) => ({
      index: link.ifindex,
      name: link.ifname,
      mtu: link.mtu,
      kind: link.linkinfo?.info_kind ?? '',
      up: link.flags.includes('UP'),
    }));
    expect(ours).toEqual(seen);
    expect(ours).toHaveLength(3);
  });
});

describe('the counters of a link', () => {
  it('are those of iproute2, also after traffic', () => {
    const counters = () => {
      const [lo] = JSON.parse(node.run('ip', '-j', '-s', 'link', 'show', 'lo'));
      const { rx, tx } = lo.stats64;
      return { packetsIn: rx.packets, packetsOut: tx.packets, bytesIn: rx.bytes, bytesOut: tx.bytes };
    };
    const ours = () =>
      Object.fromEntries(Object.entries(getLinkTraffic(netlink, 'lo')!).map(([key, value]) => [key, Number(value)]));
    expect(ours()).toEqual(counters());
    node.run('ip', 'link', 'set', 'lo', 'up');
    const program = `const socket = require('node:dgram').createSocket('udp4');
      socket.send(Buffer.alloc(3000), 9, '127.0.0.1', () => socket.close())`;
    node.run(process.execPath, '-e', program);
    expect(ours()).toEqual(counters());
    expect(ours().bytesOut).toBeGreaterThan(3000);
    expect(getLinkTraffic(netlink, 'nobody')).toBeUndefined();
  });
});

describe('refusals', () => {
  it('of a name taken in the other namespace leave nothing behind', () => {
    connect('veth1a2b');
    const error = failure(() => connect('veth2'));
    expect(isExists(error)).toBe(true);
    expect(String(error)).toContain('RTM_NEWLINK veth "veth2" with peer "eth0": file already exists (EEXIST)');
    expect(getLink(netlink, { name: 'veth2' })).toBeUndefined();
  });

  it('of a link that is not there', () => {
    expect(isNotFound(failure(() => netlink.execute(deleteLink({ name: 'nothing' }))))).toBe(true);
    expect(isNotFound(failure(() => netlink.execute(setLink(999, { up: true }))))).toBe(true);
    expect(getLink(netlink, { index: 999 })).toBeUndefined();
    expect(getLink(netlink, { name: 'nothing' })).toBeUndefined();
  });

  it("carry the kernel's own words", () => {
    netlink.execute(newBridge({ name: 'cni0', mac: mac(1).bytes }));
    const { index } = getLink(netlink, { name: 'cni0' })!;
    const error = failure(() => netlink.execute(setLink(index, { mtu: 10 }))) as KernelError;
    expect(error).toBeInstanceOf(KernelError);
    expect(error.message).toBe(
      `RTM_SETLINK link ${index} (mtu 10): invalid argument (EINVAL): mtu less than device minimum`,
    );
  });

  it('do not stop the other requests of the datagram', () => {
    const bridge = (name: string) => newBridge({ name, mac: mac(1).bytes });
    const error = failure(() =>
      netlink.execute(bridge('one'), deleteLink({ name: 'nothing' }), bridge('one'), bridge('two')),
    );
    expect(String(error)).toContain('RTM_DELLINK link "nothing": no such device (ENODEV)');
    expect(listLinks(netlink).map((link) => link.name)).toEqual(['lo', 'one', 'two']);
  });
});
