import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { basename, join } from 'node:path';
import type { LabNode } from '../lab/lab.ts';
import type { Enclosure } from './enclosure.ts';
import { cgroups, processesByMounts } from './remains.ts';

/** Namespaces as containerd and podman name them, and what both mount for containers. */
const POD_MOUNT = /\/run\/netns\/(cni|netns)-|\/sandboxes\/|\/rootfs|\/merged/;

/**
 * All that pods leave on a node while they live, one line for each: links, rules and addresses of the plugin, and the
 * files, processes and cgroups of the runtime. Equal lists before and after mean that nothing leaked.
 */
export function tracesOf(node: LabNode, enclosure: Enclosure): string[] {
  const { namespace } = node;
  const { folder } = enclosure;
  const links = JSON.parse(namespace.run('ip', '-j', 'link')) as { ifname: string }[];
  const routes = ['-4', '-6'].flatMap((family) => lines(namespace.run('ip', family, 'route', 'show', 'table', 'all')));
  const shaping = ['qdisc', 'filter'].flatMap((what) => lines(namespace.run('tc', what, 'show')));
  const mounts = lines(enclosure.run('cat', ['/proc/self/mountinfo'])).filter((mount) => POD_MOUNT.test(mount));
  const inside = cgroups((name) => name === enclosure.cgroup).flatMap((path) =>
    readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(path, name)),
  );
  const traces: Record<string, readonly string[]> = {
    link: links.map(({ ifname }) => ifname),
    // The bridge loses its carrier with the last pod. Link-local and multicast routes come a moment after their link.
    route: routes.filter((route) => !/fe80|ff00|multicast/.test(route)).map((route) => route.replace(' linkdown', '')),
    shaping,
    rule: lines(namespace.run('nft', '--stateless', 'list', 'ruleset')),
    file: ['run/netns', 'var-lib/cni', 'var-lib/nodeplane'].flatMap((name) => files(join(folder, name))),
    mount: mounts,
    process: processesByMounts((text) => text.includes(folder)).map(commandOf),
    cgroup: inside,
  };
  return Object.entries(traces)
    .flatMap(([kind, names]) => names.map((name) => `${kind} ${name}`))
    .sort();
}

/** The addresses reserved for pods, from the names of files where all runtimes' networks have theirs. */
export function reservationsOf(enclosure: Enclosure): string[] {
  return files(join(enclosure.folder, 'var-lib/cni/networks'))
    .map((path) => basename(path))
    .filter((name) => isIP(name) !== 0)
    .sort();
}

/** By name, not by number: a daemon that was killed and came back leaves no trace. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return 'that ends';
  }
}

function files(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name));
}

function lines(text: string): string[] {
  return text.split('\n').filter(Boolean);
}
