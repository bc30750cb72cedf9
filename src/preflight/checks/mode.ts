import { formatIp, ipEquals, isLoopback, specialRange, tryParseIp } from '../../core/index.ts';
import type { Service } from '../../kube/index.ts';
import type { ProxyMode } from '../../proxy/index.ts';
import { ENTRY_CHAINS } from '../../proxy/iptables/index.ts';
import { ipvsMode } from '../../proxy/ipvs/index.ts';
import { isGeneratedChain, PROXY_JUMP, targetOf } from '../../proxy/rules/index.ts';
import type { Check, World } from '../check.ts';
import { presentProxies } from '../facts/present-proxy.ts';
import { chainsOf, placeOf, readRuleSets } from '../facts/rule-sets.ts';
import { firstFew, type Outcome, ok, skipped, warning } from '../finding.ts';
import { NO_CLUSTER } from './cluster.ts';

// What a change of mode alters for the Services of this node. The differences are kube-proxy's too (docs/migration.md).

/** From which mode to which; undefined: nothing changes, or nobody knows. */
interface Change {
  readonly from: ProxyMode;
  readonly to: ProxyMode;
}

async function changeOf({ config: { mode: to }, node, presentMode }: World): Promise<Change | undefined> {
  const from = presentMode ?? (await presentProxies(node)).find(({ mode }) => mode !== to)?.mode;
  return from === undefined || from === to ? undefined : { from, to };
}

const change: Check = {
  name: 'mode.change',
  async look(world) {
    const found = await changeOf(world);
    if (!found) return ok(`no proxy in another mode than ${world.config.mode} is here; see --present-mode`);
    return ok(
      `Services move from mode ${found.from} to ${found.to}; the rules of the new mode stand before those of the old one go`,
    );
  },
};

/** A difference that matters to some Services. */
interface Difference {
  readonly name: string;
  /** Whether it comes with the change. */
  readonly applies: (change: Change, world: World) => boolean | Promise<boolean>;
  readonly concerns: (service: Service, change: Change) => boolean;
  /** `NodePorts do not answer at 127.0.0.1 any more` */
  readonly message: (world: World) => string;
  readonly remedy: string;
}

/** Counts the Services that a difference concerns, and names the first few. */
function difference({ name, applies, concerns, message, remedy }: Difference): Check {
  return {
    name,
    async look(world): Promise<Outcome> {
      const { cluster } = world;
      const found = await changeOf(world);
      if (!found) return skipped('the mode does not change');
      if (!(await applies(found, world))) return ok(`stays as it is from mode ${found.from} to ${found.to}`);
      const what = message(world);
      if (cluster.origin.kind === 'none')
        return skipped(`${what}; which Services that concerns cannot be told: ${NO_CLUSTER}`);
      const services = (await cluster.objects()).services.filter((service) => concerns(service, found));
      if (services.length === 0) return ok(`${what}; no Service of this node is concerned`);
      const names = services.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
      return warning(
        `${what}: ${services.length} ${services.length === 1 ? 'Service' : 'Services'} (${firstFew(names)})`,
        remedy,
      );
    },
  };
}

const hasNodePort = ({ spec: { type, ports = [] } }: Service) =>
  (type === 'NodePort' || type === 'LoadBalancer') && ports.some(({ nodePort }) => nodePort !== undefined);

const localhost = difference({
  name: 'mode.localhost-nodeports',
  applies: ({ from }, { config }) => from === 'iptables' && config.localhostNodePorts === 'never',
  concerns: hasNodePort,
  message: () => 'NodePorts do not answer at 127.0.0.1 any more',
  remedy: '--localhost-nodeports, if a process of the node needs that (a registry mirror, say)',
});

const addresses = difference({
  name: 'mode.nodeport-addresses',
  applies: ({ to }, world) =>
    to === 'nftables' && world.config.nodePortAddresses === 'primary' && otherAddresses(world).length > 0,
  concerns: hasNodePort,
  message: (world) =>
    `NodePorts answer at the node’s first address alone, no longer at ${firstFew(otherAddresses(world))}`,
  remedy: '--nodeport-addresses with the CIDRs where they are to answer',
});

/** Addresses of the node that are not its first of a family: those of other interfaces, and floating ones. */
function otherAddresses({ node, config: { nodeIp } }: World): string[] {
  const all = node
    .addresses()
    .map(({ address }) => address)
    .filter((ip) => !isLoopback(ip) && specialRange(ip) !== 'link-local');
  return all
    .filter((ip) => {
      const primary = nodeIp?.family === ip.family ? nodeIp : all.find(({ family }) => family === ip.family)!;
      return !ipEquals(ip, primary);
    })
    .map(formatIp);
}

const affinity = difference({
  name: 'mode.session-affinity',
  applies: () => true,
  concerns: ({ spec }) => spec.sessionAffinity === 'ClientIP',
  message: () => 'clients that session affinity remembers are forgotten once',
  remedy: 'change the mode when that is least felt; connections that stand go on',
});

const sctp = difference({
  name: 'mode.sctp',
  applies: ({ to }, { config }) =>
    to === 'ipvs' && config.localhostNodePorts !== 'never' && !ipvsMode.localhostProtocols.includes('SCTP'),
  concerns: (service) => hasNodePort(service) && (service.spec.ports ?? []).some(({ protocol }) => protocol === 'SCTP'),
  message: () => 'SCTP NodePorts do not answer at 127.0.0.1 in mode ipvs',
  remedy: 'let processes of the node use the node’s address',
});

const unknownPorts = difference({
  name: 'mode.unknown-ports',
  applies: ({ from, to }) => to === 'nftables' && from !== 'nftables',
  concerns: ({ spec }) => tryParseIp(spec.clusterIP ?? '') !== undefined,
  message: () =>
    'ports that a Service does not have are refused at its ClusterIP, and unused addresses of ServiceCIDRs dropped',
  remedy: 'look for clients that rely on silence or on another route there; ping of a ClusterIP is not concerned',
});

const externalAddresses = difference({
  name: 'mode.external-addresses',
  applies: ({ from, to }) => to === 'nftables' && from === 'iptables',
  concerns: ({ spec, status }) =>
    (spec.externalIPs?.length ?? 0) > 0 || (status?.loadBalancer?.ingress?.length ?? 0) > 0,
  message: () => 'external addresses without endpoints are refused to processes of the node too',
  remedy: 'nothing, unless such a process waits for the timeout',
});

const firewall = difference({
  name: 'mode.firewall-holes',
  applies: async ({ to }, { node }) => to === 'nftables' && (await dropsByPolicy(node)),
  concerns: (service) => hasNodePort(service) || service.spec.healthCheckNodePort !== undefined,
  message: () =>
    'mode nftables opens no hole in a firewall that drops (INPUT, FORWARD), neither for NodePorts nor for health checks',
  remedy: 'let the node’s firewall accept NodePorts, health check ports and what is forwarded to pods',
});

/** Whether a firewall of the node drops what none of its rules accepts. Tables of iptables-nft are nf_tables too, and among them. */
async function dropsByPolicy(node: World['node']): Promise<boolean> {
  const { sets } = await readRuleSets(node);
  const inNft = node
    .nftables()
    .chains.some(
      ({ base }) =>
        base?.type === 'filter' && base.policy === 'drop' && (base.hook === 'input' || base.hook === 'forward'),
    );
  const inLegacy = sets.some(
    ({ variant, tables }) =>
      variant === 'legacy' && ['INPUT', 'FORWARD'].some((name) => tables.get('filter')?.get(name)?.policy === 'DROP'),
  );
  return inNft || inLegacy;
}

const ENTRIES: ReadonlySet<string> = new Set([...ENTRY_CHAINS.filter, ...ENTRY_CHAINS.nat]);

/** Rules of others that lead to a proxy's chains, and what they lead to. */
async function foreignJumps({ node }: World): Promise<{ target: string; place: string }[]> {
  const { sets } = await readRuleSets(node);
  return sets.flatMap((set) =>
    [...chainsOf(set)]
      .filter(({ name }) => !ENTRIES.has(name) && !isGeneratedChain(name) && !name.startsWith('KUBE-'))
      .flatMap((chain) =>
        chain.rules.flatMap((rule) => {
          const target = targetOf(rule);
          const isProxys = target !== undefined && (ENTRIES.has(target) || isGeneratedChain(target));
          return isProxys && !PROXY_JUMP.test(rule) ? [{ target, place: placeOf(chain) }] : [];
        }),
      ),
  );
}

/** Rules of others that a change of mode makes void. */
function jumpCheck(name: string, isMeant: (target: string) => boolean, remedy: string): Check {
  return {
    name,
    async look(world) {
      const found = (await foreignJumps(world)).filter(({ target }) => isMeant(target));
      if (found.length === 0) return ok('no rule of others leads there');
      const places = found.map(({ target, place }) => `${place} -> ${target}`);
      const gone = (await changeOf(world)) ? ', which goes with the mode' : '';
      const message = `${found.length} ${found.length === 1 ? 'rule' : 'rules'} of others ${found.length === 1 ? 'leads' : 'lead'} to a chain of the proxy${gone}: ${firstFew(places)}`;
      return warning(message, remedy);
    },
  };
}

const marks = jumpCheck(
  'mode.mark-masq',
  (target) => target === 'KUBE-MARK-MASQ',
  'let that software masquerade by a rule of its own: chain and mark are no interface',
);
const chains = jumpCheck(
  'mode.kube-chains',
  (target) => target !== 'KUBE-MARK-MASQ',
  'write the rule without the chain: by ports (NodePorts 30000-32767) or addresses',
);

export const MODE_CHECKS: readonly Check[] = [
  change,
  localhost,
  addresses,
  affinity,
  sctp,
  unknownPorts,
  externalAddresses,
  firewall,
  marks,
  chains,
];
