import { addressBits, formatIp, type IpFamily, ipFromBytes } from '../../core/index.ts';
import type { RuleParts } from './rule.ts';

/**
 * Rules that send a packet back (RETURN) when its source and its destination are not the same address; whatever follows them in
 * their chain is for packets of an address to itself.
 *
 * iptables compares parts of a packet with constants, never with each other. But two addresses are the same when no bit of one
 * differs from the other's, and a bit is a constant mask: two rules each, 64 for IPv4 and 256 for IPv6, whatever addresses there
 * are. The last bits come first, because there the addresses of a cluster differ: half of all packets are sent back at each bit, so
 * one meets 3.5 of the rules on average.
 */
export function returnUnlessSameAddress(family: IpFamily): RuleParts[] {
  const rules: RuleParts[] = [];
  for (let bit = addressBits(family) - 1; bit >= 0; bit--) {
    const isSet = onlyBit(family, bit);
    // "Not this value" rather than "zero": some versions of iptables leave out a match for a zero address.
    rules.push({ source: `-s ${isSet}`, destination: `! -d ${isSet}`, target: '-j RETURN' });
    rules.push({ source: `! -s ${isSet}`, destination: `-d ${isSet}`, target: '-j RETURN' });
  }
  return rules;
}

/** `0.0.0.1/0.0.0.1`: addresses with this bit, counted from the highest. */
function onlyBit(family: IpFamily, bit: number): string {
  const bytes = new Uint8Array(addressBits(family) / 8);
  bytes[bit >> 3] = 0x80 >> (bit & 7);
  const address = formatIp(ipFromBytes(bytes));
  // The only mask of these that has a length, and iptables-save prints it so.
  return bit === 0 ? `${address}/1` : `${address}/${address}`;
}
