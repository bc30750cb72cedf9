import { addressBits, type Cidr, formatCidr, networkOf, parseAddressWithPrefix } from '../../core/index.ts';
import { journalEntries } from '../../ipam/index.ts';

/**
 * The ranges that pods of a network have addresses of, by the notes that their ADDs left. A pod is noted with its range where
 * it has masquerade, a firewall or any other feature; without one nothing is known of it.
 *
 * @throws ERR_IPAM_STORE
 */
export function livingRanges(dataDirs: readonly string[], network: string): Cidr[] {
  const found = new Map<string, Cidr>();
  for (const { note, network: of } of dataDirs.flatMap(journalEntries)) {
    const ips = of === network && Array.isArray(note?.ips) ? note.ips : [];
    for (const text of ips) {
      const range = rangeOf(text);
      if (range) found.set(formatCidr(range), range);
    }
  }
  return [...found.values()];
}

/** Of an address with the prefix of its range; undefined: it is none, or stands alone. */
function rangeOf(text: unknown): Cidr | undefined {
  try {
    const { address, prefixLength } = parseAddressWithPrefix(String(text));
    if (prefixLength === addressBits(address.family)) return undefined;
    return { address: networkOf(address, prefixLength), prefixLength };
  } catch {
    return undefined;
  }
}
