import {
  cidrContains,
  type IpAddress,
  ipEquals,
  isLoopback,
  tryParseCidr,
  tryParseIp,
} from '../../../../core/index.ts';

/** Names and values of environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/**
 * The proxy through which a server is reached by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or their names in small letters, as Go's
 * programs read them (golang.org/x/net/http/httpproxy), kube-proxy among them: kubeadm copies them into its container.
 *
 * @returns the URL of the proxy; undefined when the server is reached directly
 */
export function proxyOf(server: URL, env: Environment): string | undefined {
  const given = (name: string) => env[name] || env[name.toLowerCase()] || '';
  const proxy = server.protocol === 'https:' ? given('HTTPS_PROXY') : given('HTTP_PROXY');
  if (proxy === '') return undefined;
  const host = server.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const port = server.port || DEFAULT_PORTS[server.protocol]!;
  const ip = tryParseIp(host);
  if (host === 'localhost' || (ip && isLoopback(ip))) return undefined;
  const entries = given('NO_PROXY')
    .split(',')
    .map((entry) => entry.trim().toLowerCase());
  if (entries.some((entry) => excludes(entry, host, ip, port))) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

/** One entry of NO_PROXY: `*`, a CIDR, an address, a domain (with all below it; `.x` is all below x alone), each may have a port. */
function excludes(entry: string, host: string, ip: IpAddress | undefined, port: string): boolean {
  if (entry === '') return false;
  if (entry === '*') return true;
  const cidr = tryParseCidr(entry);
  if (cidr) return ip !== undefined && ip.family === cidr.address.family && cidrContains(cidr, ip);
  const [, bracketed, plain, wantedPort] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [];
  const name = bracketed ?? plain ?? entry;
  if (wantedPort !== undefined && wantedPort !== port) return false;
  const address = tryParseIp(name);
  if (address) return ip !== undefined && ipEquals(address, ip);
  const domain = name.replace(/^\*?\./, '');
  if (domain === '') return false;
  return host.endsWith(`.${domain}`) || (domain === name && host === domain);
}
