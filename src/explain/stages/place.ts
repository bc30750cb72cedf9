import type { ProxyMode } from '../../proxy/index.ts';
import type { Evidence } from '../answer/index.ts';
import { isOwnTable } from '../nft/index.ts';
import type { Step } from '../walk/index.ts';

/** Chains that service proxies write: kube-proxy, and our own modes iptables and ipvs under the same names. */
const OF_PROXIES = 'KUBE-';
/** Of the kubelet, whatever the proxy. */
const OF_KUBELET: ReadonlySet<string> = new Set(['KUBE-FIREWALL', 'KUBE-KUBELET-CANARY']);

/** Where in the kernel a rule is, in words. */
export function placeOf(step: Step): string {
  return `${chainOf(step)}, ${ruleOf(step)} (hook ${step.hook})`;
}

/** A command line that shows it. */
export function showing({ chain, source }: Step): string {
  if (source === 'nftables') return `nft -a list chain ${chain.family} ${chain.table} '${chain.name}'`;
  if (source === 'ipvs') return 'ipvsadm -L -n';
  return `iptables-legacy -t ${chain.table} -S ${chain.name}   # ip6tables-legacy for IPv6`;
}

export function evidenceOf(step: Step): Evidence[] {
  return [{ source: step.source, object: `${tableOf(step)} ${step.chain.name} ${ruleOf(step)}`, value: step.verdict }];
}

/** `inet nodeplane`, `iptables-legacy nat` */
export function tableOf({ chain, source }: Step): string {
  return source === 'nftables' ? `${chain.family} ${chain.table}` : `${source} ${chain.table}`;
}

/** Whether this agent, in its mode, writes rules there. */
export function isOurs({ chain, source }: Step, mode: ProxyMode): boolean {
  if (source === 'nftables' && isOwnTable(chain.table)) return true;
  if (source === 'ipvs') return mode === 'ipvs';
  return mode !== 'nftables' && isChainOfProxies(chain.name);
}

/** Whether another service proxy, or this one in another mode, has left it. */
export function isOldProxy(step: Step, mode: ProxyMode): boolean {
  if (isOurs(step, mode)) return false;
  return step.source === 'ipvs' || step.chain.table === 'kube-proxy' || isChainOfProxies(step.chain.name);
}

/** The kubelet's own do not count. */
export function isChainOfProxies(name: string): boolean {
  return name.startsWith(OF_PROXIES) && !OF_KUBELET.has(name);
}

function chainOf(step: Step): string {
  return step.source === 'ipvs'
    ? `virtual server ${step.chain.name}`
    : `table ${tableOf(step)}, chain ${step.chain.name}`;
}

function ruleOf({ source, rule }: Step): string {
  if (!rule) return 'the policy';
  return `rule ${source === 'nftables' ? rule.handle : rule.number}`;
}
