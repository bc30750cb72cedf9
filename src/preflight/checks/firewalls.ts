/** A firewall of the host, and how it is told. */
interface Firewall {
  readonly name: string;
  readonly chain: RegExp;
  /** Of nf_tables. */
  readonly table?: string;
  /** What lets pods through, and with that Services and NodePorts, which lead to pods. */
  readonly remedy: string;
}

export const FIREWALLS: readonly Firewall[] = [
  {
    name: 'firewalld',
    chain: /^(?:FWDI_|IN_public|INPUT_direct|INPUT_ZONES)/,
    table: 'firewalld',
    // Of a node's own address is what it sends to pods here itself, and for a NodePort, but by a tunnel.
    remedy:
      'firewall-cmd --permanent --zone=trusted --add-source=<pod CIDR> --add-source=<address of each other node>; firewall-cmd --reload',
  },
  {
    name: 'ufw',
    chain: /^ufw6?-/,
    // The last for NodePorts that lead to pods of other nodes.
    remedy:
      'ufw route allow in on <bridge>; ufw route allow out on <bridge>; ufw allow in on <bridge>; ufw route allow to <pod CIDR>',
  },
  {
    name: 'shorewall',
    // By it its own commands know that it is at work (product_is_started of its lib.common).
    chain: /^shorewall$/,
    remedy:
      'in /etc/shorewall, and in /etc/shorewall6 with ipv6, "pod ipv4" in zones, "pod <bridge> routeback,bridge" in interfaces, "pod all ACCEPT" and "all pod ACCEPT" in policy before what drops; shorewall reload',
  },
];
