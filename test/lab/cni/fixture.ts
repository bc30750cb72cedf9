import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFolder, createNamespace, type TestNamespace } from '../namespace.ts';
import { callPlugin, type PluginCall, type PluginJson } from './plugin.ts';

export const IPV4 = { subnet: '10.244.1.0/24' };
export const IPV6 = { subnet: 'fd00:10:244:1::/64' };

/** A node without anything on it, and a directory for its reservations. */
export interface BareNode {
  readonly namespace: TestNamespace;
  readonly dataDir: string;
  /** A dual-stack network configuration; `change` and `ipam` replace keys. */
  config(change?: object, ipam?: object): object;
  /** ADD that must succeed; returns the result. */
  add(pod: TestNamespace, call?: Partial<PluginCall>): Promise<PluginJson>;
  /** DEL that must succeed. */
  del(pod: TestNamespace | string, call?: Partial<PluginCall>): Promise<void>;
  /** Names of the files in the network's directory that are reservations. */
  reservations(): string[];
}

export function createNode(): BareNode {
  const namespace = createNamespace('node');
  const dataDir = createFolder('reservations').path;
  const config = (change: object = {}, ipam: object = {}) => ({
    cniVersion: '1.1.0',
    name: 'net',
    type: 'nodeplane-cni',
    ipam: { type: 'host-local', ranges: [[IPV4], [IPV6]], dataDir, ...ipam },
    ...change,
  });
  const call = async (command: string, netns: TestNamespace | string, changes: Partial<PluginCall>) => {
    const containerId = typeof netns === 'object' ? netns.name : 'container-1';
    const outcome = await callPlugin(namespace, { command, netns, containerId, config: config(), ...changes });
    if (outcome.status !== 0) throw new Error(`${command} failed: ${outcome.stdout}${outcome.stderr}`);
    return outcome;
  };
  return {
    namespace,
    dataDir,
    config,
    add: async (pod, changes = {}) => (await call('ADD', pod, changes)).json!,
    async del(pod, changes = {}) {
      const { stdout } = await call('DEL', pod, changes);
      if (stdout !== '') throw new Error(`DEL printed ${stdout}`);
    },
    reservations() {
      const folder = join(dataDir, 'net');
      return existsSync(folder) ? readdirSync(folder).filter((name) => /^[0-9a-f]+[.:]/.test(name)) : [];
    },
  };
}

interface IpLink {
  readonly ifname: string;
  readonly address: string;
  readonly mtu: number;
  readonly operstate: string;
  readonly flags: readonly string[];
  readonly master?: string;
  readonly ifalias?: string;
  readonly addr_info: readonly { readonly local: string; readonly prefixlen: number; readonly scope: string }[];
}

interface IpRoute {
  readonly dst: string;
  readonly gateway?: string;
  readonly dev: string;
}

/** Links with their addresses as iproute2 shows them, without link-local addresses, which come by themselves. */
export function linksOf(namespace: TestNamespace) {
  const links = JSON.parse(namespace.run('ip', '-j', 'address')) as IpLink[];
  // `ip address` does not show the alias, `ip link` no addresses.
  const aliases = JSON.parse(namespace.run('ip', '-j', 'link')) as Pick<IpLink, 'ifname' | 'ifalias'>[];
  return links.map(({ ifname, address, mtu, operstate, flags, master, addr_info }) => ({
    ifname,
    address,
    mtu,
    operstate,
    flags,
    master,
    ifalias: aliases.find((link) => link.ifname === ifname)?.ifalias,
    addresses: addr_info.filter(({ scope }) => scope !== 'link').map(({ local, prefixlen }) => `${local}/${prefixlen}`),
  }));
}

/** Routes of both families as `dst via gateway dev link`, without link-local and multicast ones. */
export function routesOf(namespace: TestNamespace, ...selector: string[]): string[] {
  return ['-4', '-6'].flatMap((family) => {
    const routes = JSON.parse(namespace.run('ip', '-j', family, 'route', 'show', ...selector) || '[]') as IpRoute[];
    return routes
      .filter(({ dst }) => !/^(fe80|ff00|multicast)/.test(dst))
      .map(({ dst, gateway, dev }) => `${family} ${dst}${gateway ? ` via ${gateway}` : ''} dev ${dev}`);
  });
}

const SYSCTLS = ['net/ipv4/ip_forward', 'net/ipv6/conf/all/forwarding', 'net/ipv6/conf/lo/disable_ipv6'];

/** All that an ADD could change: compare before and after. */
export function snapshot(namespaces: readonly TestNamespace[], folder: string): object {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return [path, entry.isFile() ? readFileSync(path, 'utf8') : ''];
  });
  return {
    namespaces: namespaces.map((namespace) => ({
      links: linksOf(namespace),
      routes: routesOf(namespace, 'table', 'all'),
      sysctls: SYSCTLS.map((name) => namespace.run('cat', `/proc/sys/${name}`).trim()),
    })),
    files: Object.fromEntries(files.sort()),
  };
}

/** Whether a TCP segment reaches `ip` and its answer comes back: nothing listens there, so the answer is a refusal. */
export function reaches(from: TestNamespace, ip: string): boolean {
  const script = `timeout 3 bash -c 'exec 3<>/dev/tcp/${ip}/9' 2>&1 || true`;
  return from.run('bash', '-c', script).includes('Connection refused');
}
