import { formatIpPort, type IpAddress, tryParseIp } from '../core/index.ts';

/** Where a server listens. */
export interface BindAddress {
  readonly ip: IpAddress;
  readonly port: number;
}

/** Reads `IP:port`, `[IPv6]:port` or a bare IP, which gets `defaultPort`. Undefined when the text is none of these. */
export function parseBindAddress(text: string, defaultPort: number): BindAddress | undefined {
  const bare = tryParseIp(text.replace(/^\[(.*)\]$/, '$1'));
  if (bare) return { ip: bare, port: defaultPort };
  const [, v6, v4, portText] = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const ip = tryParseIp(v6 ?? v4 ?? '');
  const port = Number(portText);
  return ip && port >= 1 && port <= 65535 ? { ip, port } : undefined;
}

export function formatBindAddress(address: BindAddress): string {
  return formatIpPort(address.ip, address.port);
}
