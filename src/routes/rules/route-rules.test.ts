import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { numberedNode } from '../../../test/fakes/routes/node-objects.ts';
import { formatIp, ipFromBytes, parseCidr } from '../../core/index.ts';
import type { NftChange } from '../../netlink/nftables/index.ts';
import type { RuleEvent } from './events.ts';
import { RouteRules } from './route-rules.ts';
import type { MasqueradeSettings, RuleSettings } from './settings.ts';
import { RULES_TABLE, setRef } from './table.ts';

const MASQUERADE: MasqueradeSettings = {
  ownPods: ['IPv4', 'IPv6'],
  sources: [],
  exempt: [],
  keepsSourceToNodes: false,
  randomFully: true,
};
const SETTINGS: RuleSettings = { tunnelPort: 8472, masqueradeMark: 0x4000, masquerade: MASQUERADE };

function world(settings: RuleSettings = SETTINGS, nft = new FakeNftables()) {
  const clock = new FakeClock();
  const events: RuleEvent[] = [];
  const rules = new RouteRules({
    nodeName: 'n1',
    settings,
    open: () => nft,
    watch: (listener) => nft.watch(listener),
    clock,
    observe: (event) => events.push(event),
  });
  /** The addresses in a set of IPv4. */
  const set = (name: string) =>
    nft
      .listElements(setRef(name))
      .map(({ key }) => formatIp(ipFromBytes(key)))
      .sort();
  const start = async (...numbers: number[]) => {
    for (const number of numbers) rules.nodeChanged(numberedNode(number));
    rules.start();
    await clock.advance(100);
  };
  return { clock, nft, rules, events, set, start };
}

describe('the rules beside the routes', () => {
  it('are one table', async () => {
    const exempt = [parseCidr('10.64.0.0/10')];
    const { nft, start } = world({ ...SETTINGS, masquerade: { ...MASQUERADE, exempt } });
    await start(1, 2, 3);
    expect(nft.commits).toHaveLength(1);
    expect(nft.toString()).toMatchSnapshot();
  });

  it('without a tunnel guard nothing, and keep the source of what goes to nodes', async () => {
    const masquerade: MasqueradeSettings = { ...MASQUERADE, ownPods: [], keepsSourceToNodes: true, randomFully: false };
    const sources = [parseCidr('10.64.0.0/10')];
    const { nft, start } = world({ ...SETTINGS, tunnelPort: undefined, masquerade: { ...masquerade, sources } });
    await start(1, 2);
    expect(nft.toString()).toMatchSnapshot();
  });

  it('keep the packets of WireGuard from being tracked, and turn nobody away', async () => {
    const { nft, start } = world({
      ...SETTINGS,
      tunnelPort: undefined,
      wireguard: { port: 51820, podRanges: [], mayBeDirect: false },
      masquerade: undefined,
    });
    await start(1, 2);
    expect(nft.toString()).toMatchSnapshot();
  });

  it('let nothing to pods of other nodes leave but by WireGuard, or to a node on the link', async () => {
    const wireguard = { port: 51820, podRanges: [parseCidr('10.64.0.0/10')], mayBeDirect: true };
    const { nft, start } = world({ ...SETTINGS, tunnelPort: undefined, wireguard, masquerade: undefined });
    await start(1, 2);
    expect(nft.toString()).toMatchSnapshot();
  });

  it('hold back nothing by the cluster’s range before this node’s own is known', async () => {
    const wireguard = { port: 51820, podRanges: [parseCidr('10.64.0.0/10')], mayBeDirect: false };
    const { start, rules, set, clock } = world({ ...SETTINGS, wireguard });
    await start(2);
    expect(set('encrypted-ipv4-24')).toEqual(['10.64.2.0']);
    expect(() => set('encrypted-ipv4-10')).toThrow();
    rules.nodeChanged(numberedNode(1));
    await clock.advance(100);
    expect(set('encrypted-ipv4-10')).toEqual(['10.64.0.0']);
    expect(set('own-ipv4-24')).toEqual(['10.64.1.0']);
  });

  it('hold back nothing by a range that contains an address of this node, whoever names it', async () => {
    const wireguard = { port: 51820, podRanges: [parseCidr('10.0.0.0/8')], mayBeDirect: false };
    const { start, rules, set, clock } = world({ ...SETTINGS, wireguard });
    rules.nodeChanged(numberedNode(3, { podCidrs: ['10.0.0.0/16'] }));
    await start(2, 1);
    expect(() => set('encrypted-ipv4-8')).toThrow();
    expect(() => set('encrypted-ipv4-16')).toThrow();
    expect(set('encrypted-ipv4-24')).toEqual(['10.64.2.0']);
    rules.nodeChanged(numberedNode(1, { ips: ['192.0.2.1'] }));
    await clock.advance(100);
    expect(set('encrypted-ipv4-8')).toEqual(['10.0.0.0']);
    expect(set('encrypted-ipv4-16')).toEqual(['10.0.0.0']);
  });

  it('without either there is no table, and one that is there goes', async () => {
    const { nft, start, rules } = world();
    await start(1, 2);
    await rules.stop();
    const off = world({ ...SETTINGS, tunnelPort: undefined, masquerade: undefined }, nft);
    await off.start(1, 2);
    expect(nft.toString()).toBe('');
  });

  it('are found as they are by the next agent', async () => {
    const { nft, start, rules } = world();
    await start(1, 2, 3);
    await rules.stop();
    const [commits, text] = [nft.commits.length, nft.toString()];
    await world(SETTINGS, nft).start(3, 2, 1);
    expect(nft.commits).toHaveLength(commits);
    expect(nft.toString()).toBe(text);
  });

  it('follow the Nodes that came and went while no agent ran', async () => {
    const { nft, start, rules } = world();
    await start(1, 2, 3);
    await rules.stop();
    const next = world(SETTINGS, nft);
    await next.start(1, 3, 4);
    expect(next.set('peers-ipv4')).toEqual(['10.0.0.3', '10.0.0.4']);
    expect(next.set('former-peers-ipv4')).toEqual(['10.0.0.2']);
    expect(next.set('kept-ipv4-24')).toEqual(['10.64.1.0', '10.64.3.0', '10.64.4.0']);
  });

  it('take another port in one transaction, with all elements in it', async () => {
    const { nft, start, rules } = world();
    await start(1, 2, 3);
    await rules.stop();
    const commits = nft.commits.length;
    const next = world({ ...SETTINGS, tunnelPort: 4789 }, nft);
    await next.start(1, 2);
    expect(nft.commits).toHaveLength(commits + 1);
    expect(nft.toString()).not.toContain('8472');
    expect(next.set('peers-ipv4')).toEqual(['10.0.0.2']);
    expect(next.set('former-peers-ipv4')).toEqual(['10.0.0.3']);
  });
});

describe('an event', () => {
  it('changes the elements of its Node alone, in one transaction', async () => {
    const { nft, rules, clock, set, start } = world();
    await start(1, 2);
    const { listings } = nft;
    rules.nodeChanged(numberedNode(3));
    await clock.advance(100);
    expect(nft.commitsText(1)).toMatchInlineSnapshot(`
      [
        "add element inet nodeplane-routes peers-ipv4 { 10.0.0.3 }
      add element inet nodeplane-routes peers-ipv6 { fd00::3 }
      add element inet nodeplane-routes kept-ipv4-24 { 10.64.3.0 }
      add element inet nodeplane-routes kept-ipv6-64 { fd00:10:244:3:: }
      ",
      ]
    `);
    rules.nodeChanged(numberedNode(3, { ips: ['10.0.9.9', 'fd00::3'] }));
    await clock.advance(100);
    expect(nft.commitsText(2)).toMatchInlineSnapshot(`
      [
        "add element inet nodeplane-routes peers-ipv4 { 10.0.9.9 }
      add element inet nodeplane-routes former-peers-ipv4 { 10.0.0.3 }
      delete element inet nodeplane-routes peers-ipv4 { 10.0.0.3 }
      ",
      ]
    `);
    rules.nodeRemoved('n3');
    await clock.advance(100);
    expect(nft.listings).toBe(listings);
    expect(nft.commits).toHaveLength(4);
    expect(set('peers-ipv4')).toEqual(['10.0.0.2']);
  });

  it('that changes nothing of interest does nothing', async () => {
    const { nft, rules, clock, start } = world();
    await start(1, 2);
    rules.nodeChanged(numberedNode(2, { year: 2020 }));
    rules.nodeRemoved('n7');
    await clock.advance(1000);
    expect(nft.commits).toHaveLength(1);
  });

  it('with a length of prefix that none had makes the table anew, and peers stay in', async () => {
    const { nft, rules, clock, set, start, events } = world();
    await start(1, 2);
    rules.nodeChanged(numberedNode(3, { podCidrs: ['10.70.0.0/26'] }));
    await clock.advance(100);
    expect(set('kept-ipv4-26')).toEqual(['10.70.0.0']);
    expect(set('peers-ipv4')).toEqual(['10.0.0.2', '10.0.0.3']);
    expect(nft.toString()).toContain('ip daddr & 255.255.255.192 @kept-ipv4-26 return');
    expect(events.at(-1)).toMatchObject({ kind: 'synced', repaired: false });
  });

  it('that takes the last block of a length makes nothing anew, and nobody else is said to have changed rules', async () => {
    const { nft, rules, clock, set, start, events } = world();
    await start(1, 2);
    rules.nodeChanged(numberedNode(3, { podCidrs: ['10.70.0.0/26'] }));
    await clock.advance(100);
    rules.nodeRemoved('n3');
    await clock.advance(100);
    expect(set('kept-ipv4-26')).toEqual([]);
    expect(await rules.compare()).toEqual([]);
    const commits = nft.commits.length;
    await clock.advance(601_000);
    expect(events.at(-1)).toMatchObject({ kind: 'synced', full: true, repaired: false });
    expect(nft.commits.length).toBe(commits);
    // What is made anew later is made without it.
    rules.nodeChanged(numberedNode(3, { podCidrs: ['10.70.0.0/25'] }));
    await clock.advance(100);
    expect(() => set('kept-ipv4-26')).toThrow();
    expect(await rules.compare()).toEqual([]);
  });

  it('leaves an address in that another Node has too', async () => {
    const { rules, clock, set, start } = world();
    await start(1, 2);
    rules.nodeChanged(numberedNode(3, { ips: ['10.0.0.2'] }));
    rules.nodeRemoved('n2');
    await clock.advance(100);
    expect(set('peers-ipv4')).toEqual(['10.0.0.2']);
  });

  it('about this node changes what is masqueraded; its removal does not, because its pods live on', async () => {
    const { rules, clock, set, start } = world();
    await start(1, 2);
    rules.nodeRemoved('n1');
    await clock.advance(100);
    expect(set('masqueraded-ipv4-24')).toEqual(['10.64.1.0']);
    rules.nodeChanged(numberedNode(1, { podCidrs: ['10.64.9.0/24'] }));
    await clock.advance(100);
    expect(set('masqueraded-ipv4-24')).toEqual(['10.64.9.0']);
  });
});

describe('when others meddle', () => {
  it.each<[string, (nft: FakeNftables) => void, boolean]>([
    ['the whole ruleset is flushed', (nft) => nft.flushRuleset(), true],
    [
      'rules are deleted',
      (nft) => {
        const rules = nft.listRules(RULES_TABLE).filter(({ chain }) => chain === 'tunnel-input');
        nft.commitAsOther(...rules.map((object): NftChange => ({ operation: 'delete', object })));
      },
      true,
    ],
    [
      'peers are deleted',
      (nft) => {
        const { family, name: table } = RULES_TABLE;
        const elements = nft.listElements(setRef('peers-ipv4'));
        nft.commitAsOther({
          operation: 'delete',
          object: { kind: 'elements', family, table, set: 'peers-ipv4', elements },
        });
      },
      false,
    ],
  ])('%s: all is back', async (_, meddle, repaired) => {
    const { nft, clock, start, events } = world();
    await start(1, 2, 3);
    const before = nft.toString();
    meddle(nft);
    await clock.advance(200);
    expect(nft.toString()).toBe(before);
    expect(events.at(-1)).toMatchObject({ kind: 'synced', full: true, repaired });
  });

  it('a refusal is told, what is in force stays, and it is tried again from scratch', async () => {
    const { nft, rules, clock, set, start, events } = world();
    await start(1, 2);
    nft.refuse = () => 12;
    rules.nodeChanged(numberedNode(3));
    await clock.advance(100);
    expect(events.at(-1)).toMatchObject({ kind: 'syncFailed' });
    rules.nodeChanged(numberedNode(4));
    nft.refuse = () => undefined;
    await clock.advance(2000);
    expect(set('peers-ipv4')).toEqual(['10.0.0.2', '10.0.0.3', '10.0.0.4']);
  });

  it('nf_tables that cannot be opened ends nothing, and is tried again', async () => {
    const nft = new FakeNftables();
    const clock = new FakeClock();
    const events: RuleEvent[] = [];
    let isThere = false;
    const rules = new RouteRules({
      nodeName: 'n1',
      settings: SETTINGS,
      open: () => {
        if (!isThere) throw new Error('EPROTONOSUPPORT');
        return nft;
      },
      watch: (listener) => nft.watch(listener),
      clock,
      observe: (event) => events.push(event),
    });
    rules.start();
    await clock.advance(100);
    expect(events).toEqual([expect.objectContaining({ kind: 'syncFailed' })]);
    isThere = true;
    await clock.advance(2000);
    expect(nft.listTables()).toEqual([expect.objectContaining({ name: 'nodeplane-routes' })]);
    await rules.stop();
    expect(nft.closed).toBe(true);
  });
});
