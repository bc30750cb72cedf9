import { formatIpPort, type IpAddress, tryParseIp, withPort } from '../../core/index.ts';

/** Where a server listens. */
export interface BindAddress {
  readonly ip: IpAddress;
  readonly port: number;
}

/** Reads `IP:port` or `[IPv6]:port` with a port from 1 to 65535; undefined for anything else, a missing port included. */
export function parseBindAddress(text: string): BindAddress | undefined {
  const [, bracketed, bare, portText] = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const ip = tryParseIp(bracketed ?? bare ?? '');
  const port = Number(portText);
  return ip && port >= 1 && port <= 65535 ? { ip, port } : undefined;
}

/** Adds a port to an address without one (`[v6]` may be in brackets). Any other text is returned as it is, for validation to judge. */
export function appendPort(text: string, port: number): string {
  const bare = text.replace(/^\[(.*)\]$/, '$1');
  const ip = tryParseIp(bare);
  if (!ip) return text;
  return withPort(bare, port);
}

/** `0.0.0.0:10256`, `[::]:10256`. */
export function formatBindAddress(address: BindAddress): string {
  return formatIpPort(address.ip, address.port);
}

/** 0.0.0.0 or ::, which name no address but all of them. */
export function isUnspecified(ip: IpAddress): boolean {
  return ip.bytes.every((byte) => byte === 0);
}

/** The address by which processes of the same machine reach what listens there. */
export function addressFromHere({ ip, port }: BindAddress): string {
  if (!isUnspecified(ip)) return formatIpPort(ip, port);
  return ip.family === 'IPv4' ? `127.0.0.1:${port}` : `[::1]:${port}`;
}
