import type { LabNode } from '../lab.ts';

/** What a tunnel carries and is carried by, its device, and its end's address on each node. */
const TUNNELS = {
  IPv4: { device: 'vx0', id: 7, bits: [32, 24], end: (number: number) => `10.244.${number}.0` },
  IPv6: { device: 'vx6', id: 8, bits: [128, 64], end: (number: number) => `fd00:10:244:${number}::` },
} as const;

/** Makes one end of a tunnel, as flannel's: the node's number is in its addresses. */
export function tunnel(at: LabNode, own: number, peer: number, family: 'IPv4' | 'IPv6' = 'IPv4'): void {
  const { device, id, bits, end } = TUNNELS[family];
  const [host, range] = bits;
  const to = family === 'IPv4' ? `192.168.50.${peer}` : `fd00:50::${peer}`;
  const port = family === 'IPv4' ? 'dstport 8472' : 'dstport 8472 udp6zerocsumrx';
  const nodad = family === 'IPv4' ? '' : ' nodad';
  const commands = [
    `link add ${device} address ${MAC[own]} type vxlan id ${id} local ${at.ip(family)} dev eth0 ${port} nolearning`,
    `address add ${end(own)}/${host} dev ${device}${nodad}`,
    `link set ${device} up`,
    `neigh replace ${end(peer)} lladdr ${MAC[peer]} dev ${device} nud permanent`,
    `route replace ${end(peer)}/${range} via ${end(peer)} dev ${device} onlink`,
  ];
  for (const command of commands) at.namespace.run('ip', ...command.split(' '));
  at.namespace.run('bridge', ...`fdb append ${MAC[peer]} dev ${device} dst ${to}`.split(' '));
}

export const MAC: Readonly<Record<number, string>> = { 1: '02:00:00:00:00:01', 2: '02:00:00:00:00:02' };
