import type { IpFamily } from '../../../core/index.ts';
import type { Option } from '../parse-rule.ts';
import { type Blob, type BlobForm, optionIf, rangeText } from './blob.ts';

/*
 * struct nf_nat_ipv4_multi_range_compat { u32 rangesize; struct { u32 flags; be32 min_ip, max_ip; be16 min, max; } range[1]; }
 * struct nf_nat_range2 { u32 flags; nf_inet_addr min_addr, max_addr; be16 min_proto, max_proto, base_proto; }, of which
 * nf_nat_range has all but the last. <linux/netfilter/nf_nat.h>
 */

/** NF_NAT_RANGE_*. */
const FLAG = { addresses: 1, ports: 2, random: 4, persistent: 8, fullyRandom: 16, shifted: 32 };

/** Where a struct has what. */
interface RangeLayout {
  readonly size: number;
  readonly flags: number;
  readonly addresses: readonly [first: number, last: number];
  readonly ports: readonly [first: number, last: number];
  readonly base?: number;
}

const COMPAT: RangeLayout = { size: 20, flags: 4, addresses: [8, 12], ports: [16, 18] };
const RANGE: RangeLayout = { size: 40, flags: 0, addresses: [4, 20], ports: [36, 38] };
const RANGE2: RangeLayout = { ...RANGE, size: 42, base: 40 };

type Decode = (blob: Blob, layout: RangeLayout) => Option[];

/** `10.0.0.1`, `10.0.0.1-10.0.0.9:80`, `[fd00::1]:80-90`, `:80` */
const destination =
  (name: string): Decode =>
  (blob, layout) => {
    const flags = blob.u32(layout.flags);
    const [hasAddresses, hasPorts] = [(flags & FLAG.addresses) !== 0, (flags & FLAG.ports) !== 0];
    const [first, last] = layout.addresses.map((at) => blob.address(at));
    const addresses = hasAddresses ? rangeText(first!, last!, '-') : '';
    const isBracketed = hasAddresses && hasPorts && blob.context.family === 'IPv6';
    const base = (flags & FLAG.shifted) !== 0 && layout.base !== undefined ? `/${blob.be16(layout.base)}` : '';
    const to = `${isBracketed ? `[${addresses}]` : addresses}${hasPorts ? `:${portsText(blob, layout)}${base}` : ''}`;
    return [...optionIf(to !== '', name, [to]), ...manners(flags)];
  };

const ports: Decode = (blob, layout) => {
  const flags = blob.u32(layout.flags);
  return [...optionIf((flags & FLAG.ports) !== 0, '--to-ports', [portsText(blob, layout)]), ...manners(flags)];
};

function portsText(blob: Blob, { ports: [first, last] }: RangeLayout): string {
  return rangeText(blob.be16(first), blob.be16(last), '-');
}

function manners(flags: number): Option[] {
  return [
    ...optionIf((flags & FLAG.random) !== 0, '--random'),
    ...optionIf((flags & FLAG.fullyRandom) !== 0, '--random-fully'),
    ...optionIf((flags & FLAG.persistent) !== 0, '--persistent'),
  ];
}

function form(revision: number, layout: RangeLayout, decode: Decode, family?: IpFamily): BlobForm {
  return {
    revisions: [revision],
    ...(family && { family }),
    size: layout.size,
    decode: (blob) => decode(blob, layout),
  };
}

function toAddress(name: string): readonly BlobForm[] {
  const decode = destination(name);
  return [form(0, COMPAT, decode, 'IPv4'), form(1, RANGE, decode), form(2, RANGE2, decode)];
}

/** The struct depends on the family. */
const TO_PORTS: readonly BlobForm[] = [form(0, COMPAT, ports, 'IPv4'), form(0, RANGE, ports, 'IPv6')];

/** Targets that translate. */
export const NAT_TARGETS: Readonly<Record<string, readonly BlobForm[]>> = {
  DNAT: toAddress('--to-destination'),
  SNAT: toAddress('--to-source'),
  MASQUERADE: TO_PORTS,
  REDIRECT: TO_PORTS,
};
