import { capturedHex } from './netlink-golden.ts';

/** The attribute IPSET_ATTR_PROTOCOL, which every message begins with. */
const VERSION_7 = '0500010007000000';
const VERSION_6 = '0500010006000000';

/** A message captured from the ipset program made comparable with ours: it speaks version 7, we speak 6. */
export function capturedAsVersion6(hex: string): string {
  return capturedHex(hex).replace(VERSION_7, VERSION_6);
}
