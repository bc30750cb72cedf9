import { afterAll, expect, it } from 'vitest';
import { applyConntrackSettings } from '../../../src/agent/index.ts';
import { inNetns, readSysctl } from '../../../src/sys/index.ts';
import { createNamespace, removeAll } from '../namespace.ts';

afterAll(removeAll);

it('sets what a network namespace owns and warns about what belongs to the machine', () => {
  const namespace = createNamespace('sysctls');
  inNetns(namespace.path, () => {
    const max = Number(readSysctl('net/netfilter/nf_conntrack_max'));
    const settings = { maxPerCore: max + 8, udpTimeoutMs: 47_000, udpStreamTimeoutMs: 147_000, tcpBeLiberal: true };
    const { written, warnings } = applyConntrackSettings(settings, undefined, 1);
    expect(written).toEqual([
      'nf_conntrack_udp_timeout=47',
      'nf_conntrack_udp_timeout_stream=147',
      'nf_conntrack_tcp_be_liberal=1',
    ]);
    expect(warnings).toEqual([
      expect.stringMatching(/^Cannot set "nf_conntrack_max=\d+": .*\(EACCES\); this process may not write them/),
    ]);
    expect(readSysctl('net/netfilter/nf_conntrack_udp_timeout')).toBe('47');
    expect(Number(readSysctl('net/netfilter/nf_conntrack_max'))).toBe(max);
  });
});
