import { expect, it } from 'vitest';
import { warningsOf } from '../../../test/samples/config-warnings.ts';

it.each<[string, string[]]>([
  ['--cni-conflist=/c.conflist', ['nodeplane.cni.conflist (--cni-conflist) has no effect: it is for --cni']],
  ['--cni --cni-conflist=/c.conflist', []],
  [
    '--cni --cni-macvlan-mode=bridge',
    ['nodeplane.cni.macvlan.mode (--cni-macvlan-mode) has no effect: --cni-macvlan-namespaces names none'],
  ],
  ['--cni --cni-macvlan-mode=bridge --cni-macvlan-namespaces=net', []],
  [
    '--cni --pool-cidrs=10.244.0.0/16',
    ['nodeplane.pools.cidrs (--pool-cidrs) has no effect: it is for --pod-cidrs-from pool'],
  ],
  ['--cni --pool-cidrs=10.244.0.0/16 --pod-cidrs-from=pool', []],
  ['--routes-tunnel=wireguard', ['nodeplane.routes.tunnel (--routes-tunnel) has no effect: --routes is none']],
  [
    '--routes=vxlan --routes-tunnel=wireguard',
    ['nodeplane.routes.tunnel (--routes-tunnel) has no effect: it is for --routes auto, and that is vxlan'],
  ],
  ['--routes=auto --routes-tunnel=wireguard', []],
  ['--routes=wireguard --routes-tunnel=wireguard', []],
  [
    '--routes=auto --routes-wireguard-keepalive=25',
    ['nodeplane.routes.wireguard.keepalive (--routes-wireguard-keepalive) has no effect: no tunnel is WireGuard'],
  ],
  ['--routes=wireguard --routes-vni=9', ['nodeplane.routes.vni (--routes-vni) has no effect: no tunnel is VXLAN']],
  ['--routes=host-gw --routes-mtu=1400', ['nodeplane.routes.mtu (--routes-mtu) has no effect: there is no tunnel']],
  ['--routes=vxlan --routes-vni=9 --routes-port=4789 --routes-mtu=1400 --masquerade-cidrs=none', []],
])('%s is told of what does nothing', (flags, warnings) => expect(warningsOf(flags.split(' '))).toEqual(warnings));

it('tells of a file too, but not of one that spells out the defaults', () => {
  const pools = 'nodeplane:\n  pools:\n';
  expect(warningsOf([], `${pools}    blockSize: 28\n`)).toEqual([
    'nodeplane.pools.blockSize (--pool-block-size) has no effect: it is for --pod-cidrs-from pool',
  ]);
  expect(warningsOf([], `${pools}    blockSize: 26\n    cidrs: []\n`)).toEqual([]);
});
