import { existsSync } from 'node:fs';
import { readSysctl } from '../../sys/index.ts';

/** Why IPv6 is not served on this machine, by the conditions kube-proxy looks at; undefined: it is. */
export function whyNoIpv6(): string | undefined {
  if (!existsSync('/proc/net/if_inet6')) return 'the kernel has no IPv6';
  if (readSysctl('net/ipv6/conf/all/disable_ipv6') === '1') return 'net.ipv6.conf.all.disable_ipv6 is 1';
  return undefined;
}
