import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../../core/index.ts';
import {
  accept,
  cmp,
  counter,
  ct,
  drop,
  type Expression,
  hostOrder32,
  interfaceName,
  jump,
  meta,
  type NftElement,
  type Verdict,
} from '../../../netlink/nftables/index.ts';
import { inBlock, isDestinationTranslated, isFamily, isMarked, isNew } from '../../../nft/index.ts';
import { ruleForPackets } from './nft-rule.ts';
import type { PodPackets } from './packets.ts';

const FROM: PodPackets = { direction: 'from', subnet: parseCidr('10.244.1.0/24'), link: 'cni0' };
const TO: PodPackets = { ...FROM, direction: 'to' };
const SETS: Readonly<Record<string, readonly NftElement[]>> = {
  links: [{ key: interfaceName('cni0') }],
  others: [{ key: interfaceName('eth0') }],
  states: [
    { key: hostOrder32(2), verdict: { kind: 'accept' } },
    { key: hostOrder32(8), verdict: { kind: 'jump', chain: 'new' } },
  ],
};
const told = (packets: PodPackets, ...expressions: readonly Expression[]) =>
  ruleForPackets({ kind: 'rule', family: 'inet', table: 't', chain: 'c', expressions }, packets, {
    getElement: ({ name }, key) => SETS[name]?.find((element) => Buffer.compare(element.key, Buffer.from(key)) === 0),
  });

const BITS = (bits: number): Expression => ({
  kind: 'bitwise',
  from: 0,
  to: 0,
  mask: hostOrder32(bits),
  xor: hostOrder32(0),
});
const comment: Expression = { kind: 'match', name: 'comment', revision: 0, info: new Uint8Array(256) };
const rejecting: Expression = { kind: 'target', name: 'REJECT', revision: 0, info: new Uint8Array(8) };
const byInterface = (key: 'iifname' | 'oifname', name: string) => [meta(key), cmp.equal(interfaceName(name))];

const lookup = (set: string) => ({ kind: 'lookup', set, from: 0 }) as const;

describe('what a rule does with packets of pods', () => {
  it('is told of rules for every packet', () => {
    const leads = (verdict: Verdict) => told(FROM, counter, { kind: 'verdict', verdict });
    expect(leads({ kind: 'accept' })).toEqual({ kind: 'accept' });
    expect(leads({ kind: 'return' })).toEqual({ kind: 'return' });
    expect(leads({ kind: 'jump', chain: 'x' })).toEqual({ kind: 'jump', chain: 'x' });
    expect(leads({ kind: 'goto', chain: 'x' })).toEqual({ kind: 'goto', chain: 'x' });
    expect(told(FROM, drop)).toEqual({ kind: 'refuse' });
    expect(told(FROM, counter, { kind: 'reject', type: 'icmp', code: 3 })).toEqual({ kind: 'refuse' });
    expect(told(FROM, comment, counter, rejecting)).toEqual({ kind: 'refuse' });
    expect(told(FROM, counter)).toBeUndefined();
  });

  it('is told of verdict maps', () => {
    const map = { ...lookup('states'), to: 'verdict' } as const;
    expect(told(FROM, ct('state'), map)).toEqual({ kind: 'jump', chain: 'new' });
    expect(told(FROM, ct('status'), map)).toBeUndefined();
  });

  it.each<[string, readonly Expression[], from: boolean, to: boolean]>([
    ['their source', inBlock('saddr', parseCidr('10.244.0.0/16')), true, false],
    ['their destination', inBlock('daddr', parseCidr('10.244.1.0/24')), false, true],
    ['another source', inBlock('saddr', parseCidr('10.244.2.0/24')), false, false],
    ['any other source than another', inBlock('saddr', parseCidr('10.244.2.0/24'), '!='), true, false],
    ['the interface they come in by', byInterface('iifname', 'cni0'), true, false],
    ['the interface they leave by', byInterface('oifname', 'cni0'), false, true],
    ['interfaces whose names begin so', [meta('iifname'), cmp.equal(Buffer.from('cni'))], true, false],
    ['another interface', byInterface('iifname', 'eth0'), false, false],
    ['their family', isFamily('IPv4'), true, true],
    ['the other family', isFamily('IPv6'), false, false],
    ['new connections', isNew(), true, true],
    ['connections that stand', [ct('state'), BITS(6), cmp.notEqual(hostOrder32(0))], false, false],
    ['what was sent to a NodePort', isDestinationTranslated(), false, true],
    ['a mark', isMarked(0x4000), false, false],
    ['a protocol', [meta('l4proto'), cmp.equal(Uint8Array.of(6))], false, false],
    ['one of several interfaces', [meta('iifname'), lookup('links')], true, false],
    ['one of several others', [meta('iifname'), lookup('others')], false, false],
    ['none of several interfaces', [meta('iifname'), { ...lookup('others'), invert: true }], true, false],
    ['an unknown mark in a set', [meta('mark'), lookup('links')], false, false],
    ['an extension', [{ kind: 'match', name: 'conntrack', revision: 3, info: new Uint8Array(160) }], false, false],
  ])('is told of rules that ask for %s', (_, expressions, from, to) => {
    expect(told(FROM, ...expressions, counter, accept)?.kind).toBe(from ? 'accept' : undefined);
    expect(told(TO, ...expressions, counter, jump('x'))?.kind).toBe(to ? 'jump' : undefined);
  });
});
