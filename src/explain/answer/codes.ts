/** What a cause is, whatever its numbers are in one case, and what to do in general. */
export interface CauseMeaning {
  readonly sentence: string;
  readonly remedy: string;
}

/** The page with a section for each code, its heading being the code. */
export const CODES_PAGE = 'docs/troubleshooting.md';

/**
 * Every code `nodeplane explain` gives, in the order in which a packet meets the causes. A code, once released, keeps its
 * meaning; docs/troubleshooting.md has a section for each (codes.test.ts).
 */
export const CAUSES = {
  'dns-name': {
    sentence: 'There is no Service of this name in this namespace.',
    remedy: 'Use the full name; names that are near are told.',
  },
  'not-for-us': {
    sentence: 'The Service is not served by this proxy: headless, ExternalName, or labelled for another one.',
    remedy: 'Connect to the endpoints and their targetPort, or to the name.',
  },
  family: {
    sentence: 'The address family of the client is one that the Service, the process, or the node does not have.',
    remedy: 'Set ipFamilyPolicy: PreferDualStack, or let the process listen on ::.',
  },
  'no-such-port': {
    sentence: 'The Service has no such port, or not with this protocol; or no Service has the address.',
    remedy: 'Use a port and protocol of the Service; they are told.',
  },
  'no-path-to-vip': {
    sentence: 'Nobody announces the address of the Service where the client is: its packets come to no node.',
    remedy: 'Let the load-balancer controller announce it, or route it to the nodes.',
  },
  'agent-not-ready': {
    sentence: 'The agent serves no Services yet: it waits for the objects or for the way into the kernel.',
    remedy: 'Look at `nodeplane status` and the log of the agent.',
  },
  'no-endpoints': {
    sentence: 'The selector of the Service matches no pod: it has no endpoints.',
    remedy: 'Compare spec.selector with the labels of the pods.',
  },
  'not-ready': {
    sentence: 'The Service has endpoints, but none is ready, nor both serving and terminating.',
    remedy: 'Look at the readiness probes of the pods; publishNotReadyAddresses if it is meant so.',
  },
  'manual-endpoints': {
    sentence: 'The EndpointSlices of the Service hold addresses or ports that cannot be used.',
    remedy: 'Correct the slice: port names as in the Service, addresses others can reach.',
  },
  'local-none': {
    sentence: 'The traffic policy is Local and no endpoint runs on this node.',
    remedy: 'Spread the pods over the nodes, or set the policy to Cluster.',
  },
  'nodeport-address': {
    sentence: 'NodePorts do not answer at this address of the node.',
    remedy: 'Use an address of --nodeport-addresses, or add this one.',
  },
  'source-ranges': {
    sentence: 'The client is outside of loadBalancerSourceRanges.',
    remedy: 'Add its address to spec.loadBalancerSourceRanges.',
  },
  'agent-behind': {
    sentence: 'The agent knows what is to be done, and could not write it.',
    remedy: 'Remove what the error of the last sync names.',
  },
  drift: {
    sentence: 'The rules in the kernel are not those that were written: somebody changed them.',
    remedy: 'Find who did; the agent repairs them at its next look, or now: `nodeplane diff --repair`.',
  },
  'old-proxy': {
    sentence: 'Rules of another proxy translate the connection before ours do.',
    remedy:
      'Remove what the other proxy left: `nodeplane cleanup --mode iptables`, if that is its mode; it goes beside an agent in another one.',
  },
  affinity: {
    sentence: 'Session affinity holds the client at an endpoint that is used no longer.',
    remedy: 'Wait for the timeout, or have the agent drop what holds it: `nodeplane diff --repair`.',
  },
  'stale-udp': {
    sentence: 'A tracked flow sends the packets of this client to an endpoint that is gone.',
    remedy: 'Delete the flow.',
  },
  untranslated: {
    sentence: 'A connection was begun before the rules were there, and is not translated.',
    remedy: 'Delete the flow; the next connection works.',
  },
  'recycled-ip': {
    sentence: 'A connection that nobody has answered is still sent to an address that is no endpoint any more.',
    remedy: 'Delete the flow; the next connection works.',
  },
  'conntrack-full': {
    sentence: 'The table of tracked connections is full: new ones are dropped.',
    remedy: 'Raise net.netfilter.nf_conntrack_max, and find who has so many.',
  },
  'client-ports': {
    sentence: 'The kernel of the client has no source port to give to a connection.',
    remedy: 'A wider net.ipv4.ip_local_port_range, or fewer net.ipv4.ip_local_reserved_ports, where the client is.',
  },
  'snat-ports': {
    sentence: 'Source ports that connections to the endpoint are masqueraded with are used up.',
    remedy: 'More endpoints, or externalTrafficPolicy: Local, which does not masquerade.',
  },
  'insert-race': {
    sentence:
      'Of two packets that one UDP socket sent at once, one found its entry in connection tracking taken and was dropped.',
    remedy: 'Linux 5.0 or newer; a DNS cache on each node; `options single-request-reopen` in resolv.conf.',
  },
  'foreign-drop': {
    sentence: 'Rules of somebody else drop or refuse the packet, keep it from being translated, or lead it to nobody.',
    remedy: 'Let its owner allow the packet; table, chain and rule are told.',
  },
  'ingress-policy': {
    sentence: 'The ingressPolicy of the CNI configuration keeps the two pods apart, as it is meant to.',
    remedy: 'Set "ingressPolicy" to "open" in the CNI configuration of either, and make its pod anew.',
  },
  'host-endpoint': {
    sentence: 'The endpoint is this node itself, and its own firewall (hook input) drops or refuses the packet.',
    remedy: 'Allow the range of pods in it.',
  },
  'pod-route': {
    sentence:
      'The pod of the client has no route to the address, or the one of the endpoint does not take what comes to it.',
    remedy: 'Look at the routes of the pod; made by the CNI plugin, they lead to its gateway.',
  },
  forwarding: {
    sentence: 'The kernel does not forward packets on this node.',
    remedy: 'sysctl -w net.ipv4.ip_forward=1 (net.ipv6.conf.all.forwarding=1), and find who reset it.',
  },
  'rp-filter': {
    sentence: 'rp_filter drops the packet: its answer would leave by another interface, or by none.',
    remedy: 'Set rp_filter of the interface to 2; where no way leads back to the source, give the node a route to it.',
  },
  'no-peer-route': {
    sentence: 'There is no route to the node of the endpoint.',
    remedy: 'Look at `nodeplane routes`, or at whoever makes the routes.',
  },
  'link-down': {
    sentence: 'The interface of the pod, or the one it is plugged into, is down, missing, or lets no frames pass.',
    remedy: 'Set it up again, or delete the pod.',
  },
  neighbour: {
    sentence: 'Nobody answers for the address on the last hop, or packets to it go to somebody else there.',
    remedy: 'See that the pod exists; `ip neigh` shows the entry.',
  },
  'duplicate-ip': {
    sentence: 'Two have the same address.',
    remedy: 'Find which of the two has it wrongly; `nodeplane ipam check` compares.',
  },
  'overlay-blocked': {
    sentence: 'The tunnel to the node of the endpoint does not carry packets.',
    remedy: "Let the tunnel's UDP port through every firewall between the nodes, and see where it sends packets.",
  },
  mtu: {
    sentence: 'Packets as large as the pod may send do not fit the way to the endpoint.',
    remedy: 'Set the MTU of pods to that of the way.',
  },
  hairpin: {
    sentence:
      'A pod reaches itself through the Service, and its bridge port does not let frames leave where they came in.',
    remedy: 'Set hairpinMode in the CNI configuration.',
  },
  'bridge-nf': {
    sentence: 'Both pods are on one bridge whose frames pass by the rules: answers are not translated back.',
    remedy: 'modprobe br_netfilter; sysctl -w net.bridge.bridge-nf-call-iptables=1.',
  },
  'way-back': {
    sentence: 'Answers do not come back through this node, so that they are not translated back.',
    remedy: 'Let the connection be masqueraded: --cluster-cidr and --masquerade-all tell what is.',
  },
  'invalid-rst': {
    sentence: 'Answers outside of the TCP window are not translated back, and the client resets the connection.',
    remedy:
      'sysctl -w net.netfilter.nf_conntrack_tcp_be_liberal=1 (--conntrack-tcp-be-liberal), after weighing it: conntrack tells forged packets no more.',
  },
  'target-port': {
    sentence: 'Nobody listens on the target port in the pod.',
    remedy: 'Set targetPort to what the process opens.',
  },
  'loopback-bound': {
    sentence: 'The process listens on the loopback address of its pod alone.',
    remedy: 'Bind it to 0.0.0.0 or ::.',
  },
  'accept-queue': {
    sentence: 'The process does not take connections as fast as they come: its queue is full.',
    remedy: 'Give it more instances or a larger backlog (net.core.somaxconn).',
  },
  'no-answer': {
    sentence:
      'An endpoint on another node does not answer, although all is in order as far as it can be seen from here.',
    remedy: 'Ask on its node: `nodeplane explain`.',
  },
  hints: {
    sentence: 'Topology hints are there and cannot be followed, or leave out most endpoints.',
    remedy: 'Label the node with topology.kubernetes.io/zone, and wait until every endpoint has a hint.',
  },
  terminating: {
    sentence: 'Only endpoints that terminate are left.',
    remedy: 'Readiness and surge of the rollout; a preStop hook.',
  },
  'nodeport-clash': {
    sentence:
      'A process of the node listens on the number of the NodePort and gets nothing, or may be given it for a connection.',
    remedy: 'Move the process; add the range of NodePorts to net.ipv4.ip_local_reserved_ports.',
  },
  'cannot-tell': {
    sentence: 'Something that decides could not be read or is not simulated.',
    remedy: 'What it is, is told.',
  },
} as const satisfies Readonly<Record<string, CauseMeaning>>;

export type CauseCode = keyof typeof CAUSES;
