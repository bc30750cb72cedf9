import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe } from 'vitest';
import { createLinkWorld, LONG_MS } from '../lab/cni/link-world.ts';
import { removeAll } from '../lab/namespace.ts';

// Here, because it takes a kernel whose bridges look at VLANs.

const { served, node, harms, ip } = createLinkWorld();

beforeAll(async () => {
  // An agent that begins before the kernel tracks connections cannot say how; and no namespace but the machine's own
  // has a say in how many.
  execFileSync('modprobe', ['nf_conntrack']);
  await served.startAgent({ flags: ['--conntrack-max-per-core', '0'] });
}, LONG_MS);
afterAll(removeAll);

describe('of a pod with a VLAN, others', () => {
  harms({ bridge: 'vlans0', vlan: 100 }, [
    [
      'had the bridge ignore VLANs',
      () => ip('link', 'set', 'vlans0', 'type', 'bridge', 'vlan_filtering', '0'),
      /- vlan_filtering 0\n/,
    ],
    [
      'took the port out of its VLAN',
      ({ link }) => node.run('bridge', 'vlan', 'del', 'dev', link, 'vid', '100'),
      /\+ vlan 100 pvid untagged/,
    ],
    [
      'took the bridge out of it',
      () => node.run('bridge', 'vlan', 'del', 'dev', 'vlans0', 'vid', '100', 'self'),
      /\+ bridge "vlans0" itself in vlan 100/,
    ],
    ['deleted its gateway', () => ip('link', 'del', 'vlans0.100'), /^gateway "vlans0\.100"$/m],
    [
      'took its gateway’s address',
      () => ip('address', 'del', '10.244.1.1/24', 'dev', 'vlans0.100'),
      /^gateway "vlans0\.100"\n\+ address 10\.244\.1\.1\/24$/m,
    ],
  ]);
});
