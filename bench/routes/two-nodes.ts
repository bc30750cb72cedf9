import type { IpFamily } from '../../src/core/index.ts';
import { inNetns, writeSysctl } from '../../src/sys/index.ts';
import { createNamespace, type TestNamespace } from '../../test/lab/namespace.ts';
import { ip } from '../../test/lab/wire.ts';

/** A node with one pod. Its number is also that of its Node object (`numberedNode`). */
export interface NodeWithPod {
  readonly number: number;
  readonly node: TestNamespace;
  readonly pod: TestNamespace;
}

/** Two nodes on one wire, without routes to each other's pods. */
export function createTwoNodes(label: string, podMtu: number): readonly [NodeWithPod, NodeWithPod] {
  const nodes = [1, 2].map((number): NodeWithPod => {
    const node = createNamespace(`${label}-node${number}`);
    return { number, node, pod: createNamespace(`${label}-pod${number}`) };
  }) as [NodeWithPod, NodeWithPod];
  const [one, two] = nodes;
  for (const { node, pod } of nodes) for (const namespace of [node, pod]) prepare(namespace);
  ip(one.node, [`link add eth0 type veth peer name eth0 netns ${two.node.name}`]);
  for (const { number, node, pod } of nodes) {
    ip(node, [
      'link set eth0 up',
      `address add 10.0.0.${number}/16 dev eth0`,
      `address add fd00::${number}/64 dev eth0 nodad`,
      `link add pod type veth peer name eth0 netns ${pod.name}`,
      'link set pod up',
      `address add 10.64.${number}.1/24 dev pod`,
      `address add fd00:10:244:${number}::1/64 dev pod nodad`,
    ]);
    ip(pod, [
      `link set eth0 mtu ${podMtu} up`,
      `address add ${podAddress(number, 'IPv4')}/24 dev eth0`,
      `address add ${podAddress(number, 'IPv6')}/64 dev eth0 nodad`,
      `route add default via 10.64.${number}.1`,
      `route add default via fd00:10:244:${number}::1`,
    ]);
  }
  return nodes;
}

export function podAddress(number: number, family: IpFamily): string {
  return family === 'IPv4' ? `10.64.${number}.2` : `fd00:10:244:${number}::2`;
}

function prepare(namespace: TestNamespace): void {
  inNetns(namespace.path, () => {
    writeSysctl('net/ipv4/ip_forward', 1);
    writeSysctl('net/ipv6/conf/all/forwarding', 1);
    writeSysctl('net/ipv6/conf/default/accept_dad', 0);
    writeSysctl('net/ipv4/conf/all/rp_filter', 0);
    writeSysctl('net/ipv4/conf/default/rp_filter', 0);
  });
  ip(namespace, ['link set lo up']);
}
