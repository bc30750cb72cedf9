import { fieldFlag } from './flag-spec.ts';

const OWN = { own: true, besideFile: true } as const;

/** The flags that kube-proxy does not have, each with the field it sets. Types and defaults are those of the fields. */
export const OWN_FLAGS = {
  manifests: fieldFlag(
    'nodeplane.manifests',
    'Directory of Kubernetes manifests (YAML or JSON) to read and follow, in place of an API server',
    OWN,
  ),
  'iptables-variant': fieldFlag(
    'nodeplane.iptablesVariant',
    'auto (the one in use on this machine), legacy or nft',
    OWN,
  ),
  'service-proxy-name': fieldFlag(
    'nodeplane.serviceProxyName',
    'Serve only Services whose label service.kubernetes.io/service-proxy-name has this value; empty: only those without the label',
    OWN,
  ),
  cni: fieldFlag(
    'nodeplane.cni.enabled',
    'Give pods their network: serve CNI requests, and install plugin and configuration for the container runtime',
    OWN,
  ),
  'cni-bin-dir': fieldFlag('nodeplane.cni.binDir', 'Directory where the container runtime looks for CNI plugins', OWN),
  'cni-conf-dir': fieldFlag(
    'nodeplane.cni.confDir',
    'Directory where the container runtime looks for CNI configurations',
    OWN,
  ),
  'cni-conflist': fieldFlag(
    'nodeplane.cni.conflist',
    'File with the network configuration list to install, in place of a bridge with masquerade',
    OWN,
  ),
  'cni-pod-cidrs': fieldFlag(
    'nodeplane.cni.podCIDRs',
    'Pod addresses of this node, in place of the podCIDRs of its Node object: CIDRs, each gives a pod one address',
    OWN,
  ),
  'cni-data-dir': fieldFlag('nodeplane.cni.dataDir', 'Directory of address reservations', OWN),
  'cni-socket': fieldFlag(
    'nodeplane.cni.socket',
    'Socket for the CNI plugin. The plugin looks for another one only if its environment has NODEPLANE_CNI_SOCKET',
    OWN,
  ),
  'cni-spool-dir': fieldFlag(
    'nodeplane.cni.spoolDir',
    'Directory where the CNI plugin keeps DEL requests while no agent runs; its NODEPLANE_CNI_SPOOL',
    OWN,
  ),
  'cni-macvlan-namespaces': fieldFlag(
    'nodeplane.cni.macvlan.namespaces',
    'Namespaces whose pods may have an interface macvlan0 on the network of the node, for which they ask by annotation nodeplane.io/assign-macvlan; * for all, empty for none',
    OWN,
  ),
  'cni-macvlan-masters': fieldFlag(
    'nodeplane.cni.macvlan.masters',
    'Interfaces of the node that macvlan0 may be on; default is that of the default route. The first is for pods that name none',
    OWN,
  ),
  'cni-macvlan-mode': fieldFlag(
    'nodeplane.cni.macvlan.mode',
    'What macvlan0 of different pods hear of each other: private (nothing), bridge, or vepa (what the switch sends back)',
    OWN,
  ),
  'cni-macvlan-ipam': fieldFlag(
    'nodeplane.cni.macvlan.ipam',
    'Plugin that gives macvlan0 its addresses, as JSON: {"type":"dhcp"}. Empty: pods do it themselves',
    OWN,
  ),
  'cni-macvlan-routes': fieldFlag(
    'nodeplane.cni.macvlan.routes',
    'CIDRs that pods with macvlan0 reach through the pod network, besides the node and the Service CIDRs that the API server tells',
    OWN,
  ),
  routes: fieldFlag(
    'nodeplane.routes.mode',
    'How pods on other nodes are reached: host-gw (nodes on the same link), vxlan, wireguard (encrypted), auto (host-gw, and a tunnel where there is a router in between) or none (somebody else does it)',
    OWN,
  ),
  'routes-tunnel': fieldFlag('nodeplane.routes.tunnel', 'Tunnel of --routes auto: vxlan or wireguard', OWN),
  'routes-vni': fieldFlag('nodeplane.routes.vni', 'VXLAN network of the pods: the same on all nodes', OWN),
  'routes-port': fieldFlag('nodeplane.routes.port', 'UDP port of VXLAN: the same on all nodes', OWN),
  'routes-mtu': fieldFlag(
    'nodeplane.routes.mtu',
    'Largest packet through the device of the tunnel; 0 for what the network between the nodes carries',
    OWN,
  ),
  'routes-interface': fieldFlag(
    'nodeplane.routes.interface',
    'Interface that leads to the other nodes; if empty, the one that has the node’s InternalIP',
    OWN,
  ),
  'routes-wireguard-port': fieldFlag('nodeplane.routes.wireguard.port', 'UDP port of WireGuard on this node', OWN),
  'routes-wireguard-keepalive': fieldFlag(
    'nodeplane.routes.wireguard.keepalive',
    'Seconds between packets to each node that keep the path to it open, where a firewall forgets it; 0 for none',
    OWN,
  ),
  'routes-wireguard-key-file': fieldFlag(
    'nodeplane.routes.wireguard.keyFile',
    'File with the private key of WireGuard, made when it is missing',
    OWN,
  ),
  'masquerade-cidrs': fieldFlag(
    'nodeplane.routes.masquerade.cidrs',
    'With --routes: whose packets carry the node’s address when they leave the cluster: ipv4 and ipv6 for the pods of this node, CIDRs, or none',
    OWN,
  ),
  'non-masquerade-cidrs': fieldFlag(
    'nodeplane.routes.masquerade.nonMasqueradeCIDRs',
    'With --routes: CIDRs to which packets keep their source, besides the pods of all nodes, --cluster-cidr and --pool-cidrs',
    OWN,
  ),
  'masquerade-random-fully': fieldFlag(
    'nodeplane.routes.masquerade.randomFully',
    'Choose the source ports of what --masquerade-cidrs masquerades at random, so that parallel connections do not meet',
    OWN,
  ),
  'routes-clear-network-unavailable': fieldFlag(
    'nodeplane.routes.clearNetworkUnavailable',
    'With --cni: set condition NetworkUnavailable of the own Node to False when the routes are there, if the Node has the condition',
    OWN,
  ),
  'routes-flannel-annotations': fieldFlag(
    'nodeplane.routes.flannel.annotations',
    'Write the annotations of the own Node by which nodes of flannel reach its pods',
    OWN,
  ),
  'routes-flannel-net-conf': fieldFlag(
    'nodeplane.routes.flannel.netConf',
    'File net-conf.json of flannel: how pods on other nodes are reached, and the cluster’s pod addresses, where no other option says it',
    OWN,
  ),
  'routes-flannel-subnet-file': fieldFlag(
    'nodeplane.routes.flannel.subnetFile',
    'File to write for CNI plugins of flannel: /run/flannel/subnet.env; if empty, none',
    OWN,
  ),
  'pod-cidrs-from': fieldFlag(
    'nodeplane.pools.podCIDRsFrom',
    'Where the ranges of this node’s pods come from: node (podCIDRs of the Node object) or pool (blocks of --pool-cidrs, which the nodes share among themselves)',
    OWN,
  ),
  'pool-cidrs': fieldFlag(
    'nodeplane.pools.cidrs',
    'Pools of pod addresses, as CIDRs: the same on all nodes. Blocks are taken out of the first one of each family that has any left',
    OWN,
  ),
  'pool-block-size': fieldFlag(
    'nodeplane.pools.blockSize',
    'Prefix length of the blocks of IPv4 pools: 26 makes 64 addresses',
    OWN,
  ),
  'pool-block-size-ipv6': fieldFlag('nodeplane.pools.blockSizeIPv6', 'Prefix length of the blocks of IPv6 pools', OWN),
  'pool-reclaim-after': fieldFlag(
    'nodeplane.pools.reclaimAfter',
    'Time after which the blocks of a node that is gone are taken back: the same on all nodes. A node that cannot reach the API server for two thirds of it gives its pods no more addresses',
    OWN,
  ),
  'service-traffic-metrics': fieldFlag(
    'nodeplane.serviceTrafficMetrics',
    'Show traffic metrics of so many Service ports, the busiest, and of all others together; 0: none. Counting costs some 2 % of a processor at 1,000 new connections a second',
    OWN,
  ),
  'external-ip-cidrs': fieldFlag(
    'nodeplane.externalIPCIDRs',
    'Where external IPs of Services may be: CIDRs; those elsewhere are refused. If empty, everywhere. Never within the ranges of ClusterIPs, nor at an address of a node or of the API server',
    OWN,
  ),
  'localhost-nodeports': fieldFlag(
    'nodeplane.localhostNodePorts',
    'Let processes of the node reach NodePorts at 127.0.0.1 and ::1, in every mode and whatever --nodeport-addresses says. Without it as kube-proxy: see --iptables-localhost-nodeports',
    OWN,
  ),
  'status-bind-address': fieldFlag(
    'nodeplane.statusBindAddress',
    'Address and port where everybody who reaches it may see the page /status; if empty, the metrics port shows it to clients on this machine alone',
    OWN,
  ),
  'proc-sys-root': fieldFlag(
    'nodeplane.procSysRoot',
    'Directory of sysctls, where a container that is not privileged has them to write: /proc/sys/net of the node at its net',
    OWN,
  ),
  'config-change-spread': fieldFlag(
    'nodeplane.configChangeSpread',
    'When the configuration file changes, end (to be started anew with it) after a random time up to this, so that not all nodes do at once; 0: at once',
    OWN,
  ),
  'agent-lock-dir': fieldFlag(
    'nodeplane.agentLockDir',
    'Directory of the lock that keeps two agents off one node: the second stands by until the first has ended; and of the socket that `nodeplane diff` asks. If empty, neither',
    OWN,
  ),
  'migration-annotation': fieldFlag(
    'nodeplane.migrationAnnotation',
    'Say in annotation nodeplane.io/migration of the own Node what it ran before, and whether that is gone; needs the right to patch nodes/status',
    OWN,
  ),
  'log-level': fieldFlag(
    'nodeplane.logLevel',
    'debug, info, warn or error; if empty, info, or debug from -v 4 on',
    OWN,
  ),
} as const;
