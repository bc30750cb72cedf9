import { runForked } from './fork-server.ts';
import type { IptablesVariant } from './iptables-rules.ts';
import type { TestNamespace } from './namespace.ts';

/*
 * What other programs have left in the packet filter of a node before its first pod. A test or benchmark on an empty
 * namespace meets none of it; a real node is never empty.
 */

/** Which program was there. */
export const NODE_STATES = [
  'empty',
  'kubelet-nft',
  'kubelet-legacy',
  'docker-nft',
  'docker-legacy',
  'firewalld',
  'many-zones',
] as const;
export type NodeState = (typeof NODE_STATES)[number];

const FAMILIES = ['iptables', 'ip6tables'] as const;

const PREPARATIONS: Record<NodeState, (namespace: TestNamespace) => void> = {
  empty: () => {},
  'kubelet-nft': (namespace) => asKubeletLeavesIt(namespace, 'nft'),
  'kubelet-legacy': (namespace) => asKubeletLeavesIt(namespace, 'legacy'),
  'docker-nft': (namespace) => asDockerLeavesIt(namespace, 'nft'),
  'docker-legacy': (namespace) => asDockerLeavesIt(namespace, 'legacy'),
  firewalld: asFirewalldLeavesIt,
  'many-zones': asManyZonesLeaveIt,
};

/** Brings a namespace into the state in which a program leaves a node. */
export function prepareNode(namespace: TestNamespace, state: NodeState): void {
  PREPARATIONS[state](namespace);
}

/**
 * What a kubelet (1.28 and newer) makes, of which containerd adds nothing: the chain by which others tell the variant, its
 * canaries, and the guard of 127.0.0.0/8. In iptables-nft these commands leave a table `filter` with INPUT and OUTPUT and
 * without FORWARD.
 *
 * Source: kubernetes/pkg/kubelet/kubelet_network_linux.go (`syncIPTablesRules`), pkg/util/iptables/iptables.go (`Monitor`).
 */
export function asKubeletLeavesIt(namespace: TestNamespace, variant: IptablesVariant): void {
  for (const family of FAMILIES) {
    const iptables = (...args: string[]) => namespace.run(`${family}-${variant}`, ...args);
    iptables('-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT');
    if (family === 'iptables') {
      iptables('-t', 'filter', '-N', 'KUBE-FIREWALL');
      const martians = ['-d', '127.0.0.0/8', '!', '-s', '127.0.0.0/8'];
      const unasked = ['-m', 'conntrack', '!', '--ctstate', 'RELATED,ESTABLISHED,DNAT'];
      const comment = ['-m', 'comment', '--comment', 'block incoming localnet connections'];
      iptables('-t', 'filter', '-A', 'KUBE-FIREWALL', ...comment, ...martians, ...unasked, '-j', 'DROP');
      for (const chain of ['OUTPUT', 'INPUT']) iptables('-t', 'filter', '-I', chain, '-j', 'KUBE-FIREWALL');
    }
    for (const table of ['mangle', 'nat', 'filter']) iptables('-t', table, '-N', 'KUBE-KUBELET-CANARY');
  }
}

/** What dockerd 28 makes at its start, of both families; the policy of FORWARD is DROP. */
export function asDockerLeavesIt(namespace: TestNamespace, variant: IptablesVariant): void {
  for (const family of FAMILIES) {
    const local = family === 'iptables' ? '127.0.0.0/8' : '::1/128';
    restore(namespace, `${family}-${variant}`, [
      ...['*filter', ':INPUT ACCEPT', ':FORWARD DROP', ':OUTPUT ACCEPT'],
      ...['DOCKER', 'DOCKER-BRIDGE', 'DOCKER-CT', 'DOCKER-FORWARD', 'DOCKER-USER'].map((name) => `:${name} -`),
      ...['DOCKER-ISOLATION-STAGE-1', 'DOCKER-ISOLATION-STAGE-2'].map((name) => `:${name} -`),
      '-A FORWARD -j DOCKER-USER',
      '-A FORWARD -j DOCKER-FORWARD',
      '-A DOCKER ! -i docker0 -o docker0 -j DROP',
      '-A DOCKER-BRIDGE -o docker0 -j DOCKER',
      '-A DOCKER-CT -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      '-A DOCKER-FORWARD -j DOCKER-CT',
      '-A DOCKER-FORWARD -j DOCKER-ISOLATION-STAGE-1',
      '-A DOCKER-FORWARD -j DOCKER-BRIDGE',
      '-A DOCKER-FORWARD -i docker0 -j ACCEPT',
      '-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2',
      '-A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP',
      'COMMIT',
      ...['*nat', ':PREROUTING ACCEPT', ':INPUT ACCEPT', ':OUTPUT ACCEPT', ':POSTROUTING ACCEPT', ':DOCKER -'],
      '-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER',
      `-A OUTPUT ! -d ${local} -m addrtype --dst-type LOCAL -j DOCKER`,
      'COMMIT',
    ]);
  }
}

/** The frame of what firewalld 1.3.3 makes by its nftables backend: a chain that refuses what no zone has accepted. */
export function asFirewalldLeavesIt(namespace: TestNamespace): void {
  const script = `table inet firewalld {
    chain filter_PREROUTING {
      type filter hook prerouting priority filter + 10; policy accept;
      icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept
      meta nfproto ipv6 fib saddr . mark . iif oif missing drop
    }
    chain filter_INPUT {
      type filter hook input priority filter + 10; policy accept;
      ct state { established, related } accept
      ct status dnat accept
      iifname "lo" accept
      ct state invalid drop
      accept
    }
    chain filter_FORWARD {
      type filter hook forward priority filter + 10; policy accept;
      ct state { established, related } accept
      ct status dnat accept
      iifname "lo" accept
      ct state invalid drop
      jump filter_FORWARD_ZONES
      reject with icmpx admin-prohibited
    }
    chain filter_FORWARD_ZONES { }
    chain nat_PREROUTING { type nat hook prerouting priority dstnat + 10; policy accept; }
    chain nat_POSTROUTING { type nat hook postrouting priority srcnat + 10; policy accept; }
  }`;
  namespace.run('nft', script);
}

/** The same with a hundred zones, of which each has a chain with rules for some of what is forwarded. */
function asManyZonesLeaveIt(namespace: TestNamespace): void {
  asFirewalldLeavesIt(namespace);
  const zones = Array.from({ length: 100 }, (_, n) => `filter_FWD_zone${n}`);
  const rules = (zone: string, n: number) =>
    Array.from(
      { length: 5 },
      (_, port) => `add rule ${zone} ip saddr 172.16.${n}.0/24 tcp dport ${8000 + port} accept`,
    );
  const lines = [
    ...zones.map((zone) => `add chain ${zone}`),
    ...zones.flatMap(rules),
    ...zones.map((zone) => `add rule filter_FORWARD_ZONES jump ${zone}`),
  ];
  namespace.run('nft', lines.map((line) => line.replace(/^add (chain|rule) /, 'add $1 inet firewalld ')).join('; '));
}

function restore(namespace: TestNamespace, program: string, lines: readonly string[]): void {
  // Legacy iptables would leave its lock file in /run for good: programs run so have another.
  runForked(`${program}-restore`, [], { netns: namespace.path, input: `${lines.join('\n')}\n` });
}
