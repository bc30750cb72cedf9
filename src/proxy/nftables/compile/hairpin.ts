import { addressBits, type IpFamily } from '../../../core/index.ts';
import { cmp, type Expression, payload, returnToCaller } from '../../../netlink/nftables/index.ts';
import { type RuleBody, rule } from './rule.ts';

/** Finds packets that Services led back to their sender. */
export const HAIRPIN_CHAIN = 'hairpin';

/**
 * Rules that send a packet back when its source and its destination are not the same address; whatever follows them is for packets
 * of an address to itself.
 *
 * Kernels before 6.13 compare registers with constants only. But two addresses are the same when no bit of one differs from the
 * other's: two rules a bit, 64 for IPv4 and 256 for IPv6, whatever endpoints there are. The last bits come first, because there the
 * addresses of a cluster differ: half of all packets are sent back at each bit, so one meets 3.5 of the rules on average.
 */
export function returnUnlessSameAddress(family: IpFamily): RuleBody[] {
  const rules: RuleBody[] = [];
  for (let bit = addressBits(family) - 1; bit >= 0; bit--) {
    rules.push(rule(addressBit('saddr', family, bit, '=='), addressBit('daddr', family, bit, '!='), returnToCaller));
    rules.push(rule(addressBit('saddr', family, bit, '!='), addressBit('daddr', family, bit, '=='), returnToCaller));
  }
  return rules;
}

/** `ip saddr & 0.0.0.1 == 0.0.0.1` and the like; `bit` counts from the highest. */
function addressBit(which: 'saddr' | 'daddr', family: IpFamily, bit: number, op: '==' | '!='): Expression[] {
  const mask = new Uint8Array(addressBits(family) / 8);
  mask[bit >> 3] = 0x80 >> (bit & 7);
  const xor = new Uint8Array(mask.length);
  return [
    payload[which](family),
    { kind: 'bitwise', from: 0, to: 0, mask, xor },
    op === '==' ? cmp.equal(mask) : cmp.notEqual(mask),
  ];
}
