import type { IpFamily } from '../../core/index.ts';

/** The family of tables that sees the packets of one IP family alone. */
export function nftFamily(family: IpFamily): 'ip' | 'ip6' {
  return family === 'IPv4' ? 'ip' : 'ip6';
}
