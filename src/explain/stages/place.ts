import { shellWord } from '../../core/index.ts';
import type { ChainRef } from '../../netlink/nftables/index.ts';
import type { ProxyMode } from '../../proxy/index.ts';
import { isGeneratedChain } from '../../proxy/rules/index.ts';
import type { Evidence } from '../answer/index.ts';
import { isOwnTable } from '../nft/index.ts';
import type { Step } from '../walk/index.ts';

/**
 * Chains that service proxies write, besides those of Services: kube-proxy in all its modes (pkg/proxy/iptables and
 * ipvs), and our own modes iptables and ipvs under the same names. What begins alike and is not here is somebody
 * else's: the kubelet's KUBE-FIREWALL, and kube-router's network policies (KUBE-ROUTER-FORWARD, KUBE-POD-FW-…,
 * KUBE-NWPLCY-…).
 */
const OF_PROXIES =
  /^KUBE-(?:SERVICES|EXTERNAL-SERVICES|FORWARD|NODEPORTS|PROXY-FIREWALL|PROXY-CANARY|POSTROUTING|MARK-MASQ|MARK-DROP|LOAD-BALANCER|NODE-PORT|SOURCE-RANGES-FIREWALL|(?:IPVS|XLB)-.+)$/;

/** The table of kube-proxy in mode nftables. */
const OF_KUBE_PROXY = 'kube-proxy';

/** Where in the kernel a rule is, in words. */
export function placeOf(step: Step): string {
  return `${chainOf(step)}, ${ruleOf(step)} (hook ${step.hook})`;
}

/** A command line that shows it. */
export function showing({ chain, source }: Step): string {
  if (source === 'ipvs') return 'ipvsadm -L -n';
  const [table, name] = [chain.table, chain.name].map(shellWord);
  if (source === 'nftables') return showingInNft(chain);
  return `${chain.family === 'IPv6' ? 'ip6tables' : 'iptables'}-legacy -t ${table} -S ${name}`;
}

/** Tables that iptables-nft makes, of families `ip` and `ip6`. */
const OF_IPTABLES_NFT = /^ip6? (filter|nat|mangle|raw|security)$/;

/** nft takes each word as a part of a script, whatever the shell has made of it, and has no quotes for names. */
function showingInNft({ family, table, name }: ChainRef): string {
  if (isNftName(table) && isNftName(name)) return `nft -a list chain ${family} ${table} ${name}`;
  if (OF_IPTABLES_NFT.test(`${family} ${table}`))
    return `${family === 'ip6' ? 'ip6tables' : 'iptables'}-nft -t ${table} -S ${shellWord(name)}`;
  return isNftName(table) ? `nft -a list table ${family} ${table}` : 'nft -a list ruleset';
}

/** Words of nft (1.0.6, those that it refuses) that somebody may call a chain by: iptables does not mind. */
const NFT_WORDS = new Set(
  (
    'accept all add ah arp comp constant continue counter cpu create ct day dccp delete describe device dnat dst dup ' +
    'dynamic element esp ether export exthdr fib flags flow flush fwd goto hook hour icmp icmpv6 iif insert interval ' +
    'ip ip6 jump limit list log map mark masquerade meta monitor nftrace notrack oif osf policy priority queue quota ' +
    'random redirect reject rename replace reset return rt rule sctp set size snat socket synproxy table tcp th time ' +
    'timeout tproxy udp vlan drop chain'
  ).split(' '),
);

function isNftName(name: string): boolean {
  return /^[a-zA-Z][\w/\\.-]*$/.test(name) && !NFT_WORDS.has(name);
}

/** Command lines that remove what another proxy left, beside an agent in `mode`, and show a part of it. */
export function removing(step: Step, mode: ProxyMode): readonly string[] {
  const { source, chain } = step;
  const left = source === 'ipvs' ? 'ipvs' : chain.table === OF_KUBE_PROXY ? 'nftables' : 'iptables';
  // Of its own mode an agent would lose its rules as well, and that is refused.
  const remove =
    source === 'nftables' && left === mode
      ? `nft delete table ${chain.family} ${chain.table}   # once that proxy has ended`
      : `nodeplane cleanup --mode ${left}`;
  return [remove, showing(step)];
}

/** The rule of a step as evidence of what became of the packet. */
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
  return step.source === 'ipvs' || step.chain.table === OF_KUBE_PROXY || isChainOfProxies(step.chain.name);
}

/** Whether a service proxy writes a chain of this name. */
export function isChainOfProxies(name: string): boolean {
  return OF_PROXIES.test(name) || isGeneratedChain(name);
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
