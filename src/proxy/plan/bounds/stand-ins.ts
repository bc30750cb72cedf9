import { type IpAddress, type IpFamily, parseIp } from '../../../core/index.ts';

/**
 * What the destination of a connection to a NodePort of 127.0.0.1 or ::1 is while Services are looked up: the kernel
 * routes no translated packet from or to a loopback address (martians; `docs/decisions/0011-localhost-nodeports.md`). The
 * node has these addresses while such NodePorts are served, and nothing of them is ever on a wire.
 *
 * IPv4: of 192.0.0.0/24, which the IETF keeps for protocols (RFC 6890, 2.2.2) and which has no hosts; this one is not
 * assigned to any. IPv6: a random prefix of RFC 4193.
 */
export const LOCALHOST_STAND_INS: Readonly<Record<IpFamily, IpAddress>> = {
  IPv4: parseIp('192.0.0.127'),
  IPv6: parseIp('fd02:de25:5500::1'),
};
