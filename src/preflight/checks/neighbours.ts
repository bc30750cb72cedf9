import { cidrsOverlap, formatCidr, formatIp, parseCidr } from '../../core/index.ts';
import type { Check, World } from '../check.ts';
import { chainsOf, type FoundChain, placeOf, readRuleSets } from '../facts/rule-sets.ts';
import { firstFew, type Outcome, ok, orUnread, warning } from '../finding.ts';

// Other programs of clusters on this node, by what they write into its kernel. docs/neighbours.md tells what they do beside nodeplane.

/** By what a program is known. */
interface Signs {
  readonly name: string;
  readonly chain?: RegExp;
  /** In a rule of any chain. */
  readonly rule?: RegExp;
  readonly table?: RegExp;
  readonly link?: RegExp;
}

interface Found {
  readonly name: string;
  /** Its first sign, in words. */
  readonly sign: string;
  /** One of its links is there. */
  readonly hasLink: boolean;
}

/** Other networks for pods. */
const NETWORKS: readonly Signs[] = [
  { name: 'Cilium', chain: /^CILIUM_/, link: /^cilium_/ },
  {
    name: 'Calico',
    chain: /^cali-/,
    table: /^calico$/,
    link: /^(?:cali|vxlan\.calico|vxlan-v6\.calico|wireguard\.cali)/,
  },
  {
    name: 'kube-router',
    chain: /^KUBE-(?:ROUTER|NWPLCY|POD-FW)-/,
    table: /^kube-router-filter-ipv[46]$/,
    link: /^(?:kube-bridge|kube-dummy-if)$/,
  },
  { name: 'flannel', chain: /^FLANNEL-/, table: /^flannel-ipv[46]$/, link: /^flannel[.-]/ },
  { name: 'kindnet', chain: /^KIND-MASQ-/, table: /^kindnet/, link: /^kindnet/ },
  { name: 'Weave', chain: /^WEAVE/, link: /^weave$/ },
  { name: 'Antrea', chain: /^ANTREA-/, table: /^antrea$/, link: /^antrea-gw/ },
  { name: 'AWS VPC CNI', chain: /^AWS-(?:SNAT|CONNMARK)-CHAIN-/, link: /^eni[0-9a-f]/ },
];
/** Of these some that also enforce network policies in a network of somebody else, and then have no links of their own. */
const POLICY_ENGINES: ReadonlySet<string> = new Set(['Calico', 'kube-router']);

const LOCAL_DNS = 'NodeLocal DNSCache';
const LOCAL_DNS_IP = '169.254.20.10';
const TAILSCALE = 'Tailscale';
/** addBase4, util/linuxfw/iptables_runner.go of tailscale/tailscale. */
const TAILSCALE_RANGE = parseCidr('100.64.0.0/10');

/** Programs that are no network for pods. */
const OTHERS: readonly Signs[] = [
  { name: LOCAL_DNS, rule: /-[ds] 169\.254\.20\.10\/32 /, link: /^nodelocaldns$/ },
  { name: TAILSCALE, chain: /^ts-(?:input|forward|postrouting)$/, link: /^tailscale\d+$/ },
  { name: 'wg-quick', rule: /--comment "wg-quick\(8\) rule/, table: /^wg-quick-/ },
  { name: 'kube-network-policies', table: /^kube-network-policies$/ },
  { name: 'Istio', chain: /^ISTIO_/, table: /^istio-/ },
  { name: 'ip-masq-agent', chain: /^IP-MASQ(?:-AGENT)?$/ },
];

async function findAll(
  { node }: World,
  known: readonly Signs[],
): Promise<{ found: Found[]; unread: readonly string[] }> {
  const { sets, unread } = await readRuleSets(node);
  const chains: FoundChain[] = sets.flatMap((set) => [...chainsOf(set)]);
  const { tables } = node.nftables();
  const found = known.flatMap(({ name, chain, rule, table, link }): Found[] => {
    const inRules = chains.find((one) => chain?.test(one.name) || one.rules.some((text) => rule?.test(`${text} `)));
    const inTables = tables.find((one) => table?.test(one.name));
    const device = node.links().find((one) => link?.test(one.name));
    const sign = inRules
      ? placeOf(inRules)
      : inTables
        ? `nftables table ${inTables.family} ${inTables.name}`
        : device && `link ${device.name}`;
    return sign === undefined ? [] : [{ name, sign, hasLink: device !== undefined }];
  });
  return { found, unread };
}

function told(found: readonly Found[]): string {
  return firstFew(found.map(({ name, sign }) => `${name} (${sign})`));
}

export const networks: Check = {
  name: 'rules.other-network',
  async look(world) {
    const { found, unread } = await findAll(world, NETWORKS);
    if (found.length === 0) return orUnread(ok('no other pod network has left anything'), unread);
    const message = `another pod network is here or was: ${told(found)}`;
    if (!world.config.cni && !world.config.routes)
      return ok(`${message}; without --cni and --routes the pods’ network is its own`);
    const move = 'move to nodeplane as docs/migration.md says; remove what is left when no pod of it is left';
    const isForPolicies = found.every(({ name, hasLink }) => POLICY_ENGINES.has(name) && !hasLink);
    return warning(
      isForPolicies ? `${message}, by rules alone` : message,
      isForPolicies ? `keep it if it enforces network policies here (docs/neighbours.md); otherwise ${move}` : move,
    );
  },
};

export const neighbours: Check = {
  name: 'rules.neighbours',
  async look(world) {
    const { found, unread } = await findAll(world, OTHERS);
    if (found.length === 0) return orUnread(ok('no other program that is known by its rules'), unread);
    const has = (name: string) => found.some((one) => one.name === name);
    const trouble = (has(LOCAL_DNS) && withoutCache(world)) || (has(TAILSCALE) && inTailscalesRange(world));
    return trouble || ok(`beside nodeplane: ${told(found)}; docs/neighbours.md tells what each does`);
  },
};

/** Its rules keep what pods ask out of connection tracking, and so from being translated, whether or not the cache is there. */
function withoutCache({ node }: World): Outcome | undefined {
  if (node.listeners().some(({ ip, port }) => port === 53 && formatIp(ip) === LOCAL_DNS_IP)) return undefined;
  return warning(
    `${LOCAL_DNS} has its rules or its link here, and nobody listens at ${LOCAL_DNS_IP}:53: names do not resolve`,
    'look at its pod: kubectl -n kube-system get pods -l k8s-app=node-local-dns -o wide; if it is gone, remove what it left (docs/neighbours.md)',
  );
}

function inTailscalesRange({ config: { detectLocal } }: World): Outcome | undefined {
  const cidrs = detectLocal.mode === 'ClusterCIDR' ? detectLocal.cidrs : [];
  const inside = cidrs.find((one) => cidrsOverlap(TAILSCALE_RANGE, one));
  if (!inside) return undefined;
  return warning(
    `${TAILSCALE} drops what comes to this node from ${formatCidr(TAILSCALE_RANGE)} by other links than its own, and pods have addresses of ${formatCidr(inside)}`,
    'give pods another range, or keep tailscaled from writing rules: tailscale set --netfilter-mode=off',
  );
}
