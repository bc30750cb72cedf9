/**
 * Every stable error code with what it means and what to do: the source of docs/errors.md (`npm run docs`).
 * A code, once released, keeps its meaning.
 */
export const ERROR_CODES = {
  ERR_ADDRESS_INVALID: 'Text that should be an IP address or CIDR is not one. Correct the value named in the message.',
  ERR_FFI_UNAVAILABLE:
    'The FFI library (koffi.node) could not be loaded. It must lie beside the program; build again with `npm run build` on this platform.',
  ERR_JSON:
    'A text is no JSON, or larger or deeper than anything that is meant to be there. The message names it and the limit.',
  ERR_SYSCALL: 'A system call failed. The message names the call, its object and the kernel’s reason.',
  ERR_NETNS: 'A network namespace could not be opened or entered. Check that the path exists and that you are root.',
  ERR_LOCK_TIMEOUT:
    'A lock file is held by another process for too long. The message names the file and, where it can be seen, the holder.',
  ERR_UNSAFE_PATH:
    'A directory or lock file could be replaced or held by users other than root. The message names it, its owner or mode, and what to do.',
  ERR_EXEC: 'A program could not be run, failed, or took too long. The message holds its own error output.',
  ERR_NETLINK_ACK:
    'The kernel refused a netlink request. The message names request, object, errno and the kernel’s text.',
  ERR_ENCODE:
    'A value does not fit the field of the binary message it is for. The message names field and value; correct the value.',
  ERR_NETLINK_DECODE: 'Bytes received over netlink do not have the expected shape. Report it with the message.',
  ERR_NETLINK_SOCKET: 'A netlink conversation broke: no answer, a foreign sequence number, or a lost message.',
  ERR_NETLINK_DUMP_INTERRUPTED: 'A netlink listing kept changing while it was read. Try again.',
  ERR_IPAM_CONFIG:
    'The address ranges of the network configuration are not usable. The message names the range and the reason.',
  ERR_IPAM_EXHAUSTED:
    'Every address of a range is in use, after those of pods that are gone were given back. Enlarge the range, or remove reservations of other programs from its directory, which the message counts.',
  ERR_IPAM_DUPLICATE: 'This container interface already holds an address of the network. Send DEL first.',
  ERR_IPAM_REQUEST:
    'An address that the runtime asked for cannot be given: it is in use, or lies in no range of the network. Ask for another one.',
  ERR_IPAM_STORE: 'The directory of address reservations could not be read or written.',
  ERR_POOL:
    'A block of pod addresses could not be claimed, kept or given back in the cluster’s store (PodCIDRBlock), or no addresses may be given out of it. The message names the block and what to do; every try is repeated.',
  ERR_POOL_EXHAUSTED:
    'This node needs another block of pod addresses, and the cluster’s pools have none. Add a pool, or delete the Nodes of machines that are gone: their blocks come back after a grace time.',
  ERR_CNI: 'A CNI request failed. The CNI error code and text are those printed on stdout.',
  ERR_CNI_REQUEST:
    'Bytes on the socket of the agent’s CNI server, or a DEL request kept for it, are no request of the plugin this agent installs. Look for what else connects to the socket.',
  ERR_CNI_SOCKET:
    'The agent’s CNI server cannot listen on its socket. The message names the path; another agent may still run on this node.',
  ERR_CNI_INSTALL:
    'The CNI plugin or its configuration cannot be put into, or removed from, the folders of the container runtime. The message names the file.',
  ERR_MANIFEST:
    'A manifest file cannot be used. The message names file, line and field; the last good state stays in force.',
  ERR_CONFIG: 'A flag or configuration value is not usable. The message names it and what is accepted.',
  ERR_API:
    'The Kubernetes API server could not be reached, refused a request, or answered with something unreadable. The request is repeated; the last known state stays in force.',
  ERR_IPTABLES:
    'iptables is missing or failed. The message holds the program’s own text and the rule it objected to. A table that cannot be read holds something made with nft for which iptables has no words: the message names it; have its program use a table of another name. Meanwhile the rules that are there stay in force, and an agent that runs goes on with changes of Services.',
  ERR_IPTABLES_LOCK:
    'Another process holds the lock of iptables (/run/xtables.lock), without which no rule of its legacy variant can be read or written. It is tried again until the lock is free; the rules before it stay in force. The message names the holder: look what it is waiting for. A restart of the agent changes nothing.',
  ERR_NFTABLES: 'Mode nftables cannot be used on this machine. The message names what the kernel lacks.',
  ERR_IPVS:
    'Mode ipvs cannot be used on this machine. The message names what the kernel lacks: a module to install or to load, most often.',
  ERR_CLEANUP:
    'The clean-up could not remove everything that makes Services work. The message names each place and the reason; what it does not name is gone. Run it again when the reason is.',
  ERR_HEALTH_CHECK_PORT:
    'A health check port of a Service (spec.healthCheckNodePort) could not be opened on this node, so its load balancer sees the node as down. Look for who holds the port; every sync tries again.',
  ERR_ROUTES:
    'The pods of other nodes cannot be reached from this one, or not all of them. The message names the device, route or Node in the way and what to do; it is tried again.',
  ERR_ROUTES_AGENT:
    '`nodeplane routes` shows what the kernel holds, without the names and reasons that the agent knows: it does not run, runs without --routes, or has its metrics port elsewhere (--metrics-bind-address). Name the port with --agent; it answers at 127.0.0.1 and ::1 alone.',
  ERR_STATUS_AGENT:
    '`nodeplane status` and `nodeplane services` show what the agent of this node knows, and it does not answer: it does not run, or has its metrics port elsewhere (--metrics-bind-address). Look whether it runs (kubectl get pods --all-namespaces --field-selector spec.nodeName=<node>, or the service manager), what its log ends with (kubectl logs --previous), or name the port with --address; it answers at 127.0.0.1 and ::1 alone. What it programmed stays in force meanwhile.',
  ERR_DIFF:
    '`nodeplane diff` cannot tell whether the kernel holds what is meant: no agent answers at its socket, or a part could not be compared or repaired yet. The message says which; look whether the agent runs (nodeplane status), and at the end of its log.',
  ERR_EXPLAIN_QUESTION:
    'A question to `nodeplane explain` cannot be read (exit status 64). The message says what is expected in place of what it quotes.',
  ERR_EXPLAIN_AGENT:
    '`nodeplane explain` asks the agent of this node at its socket, and it does not answer, or is of another version (exit status 69). Look whether it runs (nodeplane status), and whether it has another --agent-lock-dir; it answers root in its network namespace alone.',
  ERR_EXPLAIN:
    'The agent cannot tell what `nodeplane explain` asks for (exit status 70). The message holds its own words; the end of its log may say more.',
  ERR_DATAPLANE:
    'The kernel’s rules could not be brought in line with the plan. The next sync tries again from scratch.',
} as const satisfies Record<string, string>;

/** One of them. */
export type ErrorCode = keyof typeof ERROR_CODES;
