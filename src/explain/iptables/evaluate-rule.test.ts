import { describe, expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import { type Choice, walkAll } from '../choices.ts';
import { KnownBytes, Packet } from '../packet/index.ts';
import type { Host, Outcome } from '../walk/index.ts';
import { evaluateTextRule } from './evaluate-rule.ts';
import type { Facts } from './facts.ts';
import { markBytes } from './values.ts';

const HOST: Host = {
  addressType: () => undefined,
  interfaceTo: () => undefined,
  addressOn: () => undefined,
  redirectedTo: () => undefined,
};
const IN0 = { index: 2, name: 'in0' };

function packet(mark = 0): Packet {
  const made = new Packet({
    protocol: 'tcp',
    source: parseIp('10.7.0.5'),
    destination: parseIp('10.8.0.10'),
    destinationPort: 80,
  });
  made.iif = IN0;
  made.mark = KnownBytes.of(markBytes(mark));
  return made;
}

/** All outcomes of a rule, and what decides between them. */
function outcomes(rule: string, { mark = 0, facts = {} }: { mark?: number; facts?: Facts } = {}) {
  const about = new Set<string>();
  const { branches } = walkAll(
    (choose, meeting) => {
      const on = packet(mark);
      const noted = (kind: Choice['kind'], what: string, options: number) => {
        about.add(`${kind}: ${what}`);
        return choose(kind, what, options);
      };
      const outcome: Outcome = evaluateTextRule(
        rule,
        { packet: on, host: HOST, choose: noted, meeting },
        {
          facts,
          isChain: (name) => name === 'NEXT',
        },
      );
      return { outcome, packet: on };
    },
    { ways: 16 },
  );
  return { kinds: branches.map(({ result }) => result.outcome.kind), about: [...about], branches };
}

describe('a rule', () => {
  it.each([
    ['-s 10.7.0.0/16 -d 10.8.0.10/32 -i in+ -p tcp -m tcp --dport 80 -j ACCEPT', 'accept'],
    ['-s 0.0.0.1/0.0.0.1 ! -d 0.0.0.1/0.0.0.1 -j RETURN', 'return'],
    ['! -s 10.7.0.5/32 -j DROP', 'no match'],
    ['-p udp -m udp --dport 80 -j DROP', 'no match'],
    ['-p 6 -m multiport --dports 53,79:81 -g NEXT', 'goto'],
    ['-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j NEXT', 'jump'],
    ['-m comment --comment "whatever -j DROP"', 'continue'],
    ['-m mark --mark 0x4000/0x4000 -j DROP', 'no match'],
    ['-m mark ! --mark 0x4000/0x4000 -j REJECT --reject-with icmp-port-unreachable', 'reject'],
    ['-m conntrack --ctstate NEW -j DROP', 'no match'],
    ['-m conntrack --ctstate INVALID -j DROP', 'drop'],
    ['-m conntrack ! --ctorigdst 10.0.0.0/8 -j DROP', 'no match'],
    ['-m iprange --src-range 10.7.0.1-10.7.0.9 -j DROP', 'drop'],
    ['-m statistic --mode random --probability 1.00000000000 -j DROP', 'drop'],
    ['-m recent --set --name x --mask 255.255.255.255 --rsource -j ACCEPT', 'accept'],
    ['-j NFQUEUE --queue-num 0', 'cannot tell'],
    ['-j DNAT --to-destination 10.8.0.1-10.8.0.9', 'cannot tell'],
    ['-s 10.9.0.0/16 -m whatever --is-it so -j NFQUEUE', 'no match'],
  ])('%s: %s', (rule, kind) => {
    expect(outcomes(rule)).toMatchObject({ kinds: [kind], about: [] });
  });

  it.each([
    ['-m whatever --is-it so -j DROP', 'unknown: -m whatever --is-it so'],
    ['-m tcp --dport 80 --tcp-option 5 -j DROP', 'unknown: -m tcp --dport 80 --tcp-option 5'],
    ['-m set --match-set none src -j DROP', 'unknown: -m set --match-set none src'],
    [
      '-m recent --rcheck --seconds 10 --name x --rsource -j DROP',
      'unknown: -m recent --rcheck --seconds 10 --name x --rsource',
    ],
    ['-m addrtype --dst-type LOCAL -j DROP', 'unknown: -m addrtype --dst-type LOCAL'],
    ['-m constructor -j DROP', 'unknown: -m constructor'],
    [
      '-p tcp -m statistic --mode random --probability 0.5 -j DROP',
      'chance: -m statistic --mode random --probability 0.5',
    ],
  ])('%s goes both ways', (rule, about) => {
    expect(outcomes(rule)).toMatchObject({ kinds: ['drop', 'no match'], about: [about] });
  });

  it.each([
    ['MARK --set-xmark 0x4000/0x4000', 0x1, 0x4001],
    ['MARK --set-xmark 0x4000/0x0', 0x4001, 0x1],
    ['MARK --set-xmark 0x5/0xffffffff', 0x4001, 0x5],
  ])('-j %s makes %d to %d', (target, before, after) => {
    const [branch] = outcomes(`-j ${target}`, { mark: before }).branches;
    expect(branch!.result.packet.mark.bytes).toEqual(markBytes(after));
  });

  it('asks the list of those seen before: who is not in it is not sent there', () => {
    const rule = '-m recent --rcheck --seconds 10 --name KUBE-SEP-1 --mask 255.255.255.255 --rsource -j ACCEPT';
    const facts: Facts = { recent: (list) => (list === 'KUBE-SEP-1' ? 'never' : 'seen') };
    expect(outcomes(rule, { facts }).kinds).toEqual(['no match']);
    expect(outcomes(rule.replace('SEP-1', 'SEP-2'), { facts }).kinds).toEqual(['accept', 'no match']);
    expect(outcomes(rule.replace('SEP-1', 'SEP-2').replace('--seconds 10 ', ''), { facts }).kinds).toEqual(['accept']);
  });
});
