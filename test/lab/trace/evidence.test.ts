import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { commitText } from '../../../src/agent/evidence/index.ts';
import { deleteFlows, type Flow, listFlows, watchUnanswered } from '../../../src/netlink/conntrack/index.ts';
import { Netlink } from '../../../src/netlink/index.ts';
import { Nftables, type NftCommit, watchCommits } from '../../../src/netlink/nftables/index.ts';
import { NETLINK_NETFILTER } from '../../../src/netlink/uapi/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, own, removeAll, type TestNamespace } from '../namespace.ts';

let namespace: TestNamespace;
beforeAll(() => {
  namespace = createNamespace('evidence');
  namespace.run('ip', 'link', 'set', 'lo', 'up');
});
afterAll(removeAll);

describe('changes of nf_tables', () => {
  it('are told with the program that made them, but those of this process', () => {
    const told: (NftCommit | 'lost')[] = [];
    const { watch, nft } = inNetns(namespace.path, () => ({
      watch: watchCommits((commit) => told.push(commit)),
      nft: Nftables.open(),
    }));
    own(() => watch.close());
    own(() => nft.close());
    const table = { kind: 'table', family: 'inet', name: 'ours' } as const;
    nft.commit([{ operation: 'add', object: table }]);
    namespace.run(
      'nft',
      'add table ip other; add chain ip other c; add rule ip other c accept; add rule ip other c drop',
    );
    nft.commit([{ operation: 'delete', object: table }]);
    namespace.run('nft', 'delete', 'table', 'ip', 'other');
    namespace.run('iptables-nft', '-A', 'FORWARD', '-j', 'DROP');
    watch.catchUp();
    expect(told.map((commit) => commit !== 'lost' && [commit.processName, commitText(commit)])).toEqual([
      ['nft', 'added table ip other, added chain ip other c, added 2 rules in ip other c'],
      ['nft', 'removed table ip other'],
      ['iptables-nft', expect.stringContaining('added a rule in ip filter FORWARD')],
    ]);
  });

  it('are not lost when thousands come at once', () => {
    const told: (NftCommit | 'lost')[] = [];
    const watch = inNetns(namespace.path, () => watchCommits((commit) => told.push(commit)));
    own(() => watch.close());
    const rules = Array.from({ length: 2000 }, () => 'add rule ip many c accept');
    namespace.run('nft', ['add table ip many', 'add chain ip many c', ...rules].join('; '));
    watch.catchUp();
    expect(told).toMatchObject([{ processName: 'nft', total: 2002, changes: { length: 3 } }]);
  });
});

describe('flows that end', () => {
  let told: Flow[];
  let netlink: Netlink;
  let watch: ReturnType<typeof watchUnanswered>;
  let rests: (() => void)[];
  let now = 0;
  let waits: number[];

  beforeAll(() => {
    // Connection tracking begins with the first rule that asks for it.
    namespace.run(
      'nft',
      'add table ip track; add chain ip track c { type filter hook input priority 0; }; add rule ip track c ct state new counter',
    );
    netlink = inNetns(namespace.path, () => Netlink.open(NETLINK_NETFILTER));
    own(() => netlink.close());
  });

  beforeEach(() => {
    [told, rests, waits] = [[], [], []];
    now = 0;
    watch = inNetns(namespace.path, () =>
      watchUnanswered((flow) => told.push(flow), {
        flows: 3,
        // More than one that stands for a thousand, less than two.
        allFlows: 1500,
        periodMs: 10_000,
        now: () => now,
        after(fn, ms) {
          rests.push(fn);
          waits.push(ms);
          return { cancel: () => {} };
        },
      }),
    );
  });
  afterEach(() => watch.close());

  /** One datagram to each of these, and an answer by those that are to give one. */
  async function exchange(count: number, answered: boolean): Promise<void> {
    const server = inNetns(namespace.path, () => bound());
    const clients = Array.from({ length: count }, () => inNetns(namespace.path, () => bound()));
    server.on('message', (message, { port, address }) => answered && server.send(message, port, address));
    for (const client of clients) {
      const heard = once(answered ? client : server, 'message');
      client.send('x', server.address().port, '127.0.0.1');
      await heard;
    }
    for (const socket of [server, ...clients]) socket.close();
    deleteFlows(netlink, listFlows(netlink, { family: 'IPv4', protocol: 17 }));
    watch.catchUp();
  }

  it('are told when nobody answered, alone', async () => {
    await exchange(2, true);
    expect(told).toEqual([]);
    await exchange(2, false);
    expect(told).toHaveLength(2);
    expect(told[0]).toMatchObject({ protocol: 17, original: { destination: told[0]!.reply.source } });
  });

  it('are told only so many in a while, and again when it is over', async () => {
    now = 4000;
    await exchange(20, false);
    expect(waits).toEqual([6000]);
    expect(told).toHaveLength(3);
    expect([watch.cutShort, listens()]).toEqual([1, true]);
    rests.at(-1)!();
    await exchange(2, false);
    expect(told).toHaveLength(5);
  });

  it.each([true, false])(
    'are asked for no more when there are too many of all kinds, answered %s, until a rest is over',
    async (answered) => {
      // One of a thousand is counted, by chance.
      for (let round = 0; listens() && round < 60; round++) await exchange(400, answered);
      expect(listens()).toBe(false);
      expect(told).toHaveLength(answered ? 0 : 3);
      rests.at(-1)!();
      expect(listens()).toBe(true);
      await exchange(2, false);
      expect(told).toHaveLength(answered ? 2 : 5);
    },
  );

  /** By the kernel's list of sockets: 0x4 is NFNLGRP_CONNTRACK_DESTROY. */
  const listens = () => / 00000004 /.test(namespace.run('cat', '/proc/net/netlink'));
});

/** With a look-up that answers at once the socket is bound before this returns, in the namespace of the thread. */
function bound() {
  const socket = createSocket({ type: 'udp4', lookup: (host, _, found) => found(null, host, 4) });
  socket.bind({ port: 0, address: '127.0.0.1', exclusive: true });
  return socket;
}
