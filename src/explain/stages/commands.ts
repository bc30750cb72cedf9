import { formatIp, type IpAddress, type IpFamily, type IpProtocol, protocolWord, shellWord } from '../../core/index.ts';
import type { Source } from '../question/index.ts';
import type { Asked } from './asked.ts';

// Command lines that are told as remedies, to be pasted into a shell of the node. What is said of them is behind a `#`.

/** Of ss(8). */
const LISTENING = { TCP: '-tlnp', UDP: '-ulnp', SCTP: '-Slnp' } as const satisfies Record<IpProtocol, string>;

/** @param netns the path of a namespace. @default this node's */
export function runIn(netns: string | undefined, command: string): string {
  return netns === undefined ? command : `nsenter --net=${shellWord(netns)} ${command}`;
}

/**
 * Shows which processes listen.
 *
 * @param netns as for `runIn`
 * @param port that alone. @default all
 */
export function showingListeners(
  protocol: IpProtocol,
  { netns, port }: { readonly netns: string | undefined; readonly port?: number },
): string {
  return runIn(netns, `ss ${LISTENING[protocol]}${port === undefined ? '' : ` 'sport = :${port}'`}`);
}

/**
 * Lets a Service be changed.
 *
 * @param service `namespace/name`
 * @param what is to be changed, and into what
 */
export function editing(service: string, what: string): string {
  return `${kubectl('edit service', service)}   # ${what}`;
}

/** @param service `namespace/name` */
export function showingService(service: string): string {
  return `${kubectl('get service', service)} -o yaml`;
}

function kubectl(command: string, object: string): string {
  const [namespace, name] = object.split('/').map(shellWord);
  return `kubectl -n ${namespace} ${command} ${name}`;
}

/** Shows what the slices of a Service have. @param service `namespace/name` */
export function showingSlices(service: string): string {
  const [namespace, name] = service.split('/').map(shellWord);
  return `kubectl -n ${namespace} get endpointslices -l kubernetes.io/service-name=${name} -o yaml`;
}

/**
 * Asks an agent with the same flags, on this node or another.
 *
 * @param to a destination as `explain` takes it
 * @param options `from`: the source as `explain` takes it. @default any pod
 */
export function asking(
  to: string,
  { from, protocol }: { readonly from?: string | undefined; readonly protocol: IpProtocol },
  { commands }: Pick<Asked['knowledge'], 'commands'>,
): string {
  const source = from === undefined ? '' : ` --from ${shellWord(from)}`;
  const proto = protocol === 'TCP' ? '' : ` --proto ${protocolWord(protocol)}`;
  return `${commands.explain} ${shellWord(to)}${source}${proto}`;
}

/** A source as `explain` takes it; undefined: any pod. */
export function sourceWord(source: Source): string | undefined {
  switch (source.kind) {
    case 'any-pod':
      return undefined;
    case 'node':
      return 'node';
    case 'address':
      return formatIp(source.address);
    case 'pod':
      return `pod/${source.namespace}/${source.name}`;
  }
}

/** A command for another node. */
export function onNode(name: string | undefined, command: string): string {
  return `${command}   # on ${name ?? 'its node'}`;
}

/** Shows the policy rules. */
export function showingRules(family: IpFamily): string {
  return family === 'IPv6' ? 'ip -6 rule' : 'ip rule';
}

/** Shows why there is no way to somebody, which `ip route get` does not. @param netns as for `runIn` */
export function showingNoRoute(to: IpAddress, netns?: string): readonly [string, string] {
  const routes = `ip ${to.family === 'IPv6' ? '-6 ' : ''}route show table all match ${formatIp(to)}`;
  return [runIn(netns, routes), runIn(netns, showingRules(to.family))];
}

/** Shows which pods are said to have an address, and which leases of it are lost. */
export function whoHas(ip: string, { commands }: Pick<Asked['knowledge'], 'commands'>): readonly string[] {
  // Of two families `-o wide` shows the first.
  const columns = "'custom-columns=:.metadata.namespace,:.metadata.name,:.status.podIPs[*].ip'";
  return [`kubectl get pods -A -o ${columns} | grep -wF ${shellWord(ip)}`, `${commands.ipamCheck}`];
}
