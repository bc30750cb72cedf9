/**
 * Where a node keeps what the agent, its plugin and the container runtime share. The plugin in C names the socket and the
 * spool for itself, and the DaemonSet mounts the folders: node-paths.test.ts compares them.
 */
export const NODE_PATHS = {
  /** Where container runtimes look for plugins, unless they are told otherwise (containerd, CRI-O). */
  cniBinDir: '/opt/cni/bin',
  /** Where they look for the network configuration. */
  cniConfDir: '/etc/cni/net.d',
  /** Reservations of addresses; the layout and the folder of the reference plugin host-local. */
  cniDataDir: '/var/lib/cni/networks',
  /** Where the agent serves the plugin. */
  cniSocket: '/run/nodeplane/cni.sock',
  /** DELs that came while no agent ran. */
  cniSpoolDir: '/var/lib/nodeplane/cni/spool',
  /** The private key of the node's WireGuard device. */
  wireguardKey: '/var/lib/nodeplane/wireguard.key',
  /** What lives as long as the node runs: sockets, locks. */
  runDir: '/run/nodeplane',
  /** Held by whoever changes what pods of the node share. */
  nodeLock: '/run/nodeplane/node.lock',
  /** Held by whoever waits for that. */
  nodeGate: '/run/nodeplane/node-gate.lock',
} as const;
