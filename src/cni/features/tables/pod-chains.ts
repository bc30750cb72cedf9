import {
  type Cidr,
  formatCidr,
  IP_FAMILIES,
  IP_PROTOCOLS,
  type IpFamily,
  type IpProtocol,
  networkOf,
  parseCidr,
} from '../../../core/index.ts';
import {
  type BaseChain,
  cmp,
  ct,
  drop,
  type Expression,
  interfaceName,
  jump,
  lookup,
  meta,
  type NftChain,
  nftFamily,
  payload,
  returnToCaller,
} from '../../../netlink/nftables/index.ts';
import {
  addressRegisters,
  type ChainWithRules,
  DSTNAT,
  FILTER,
  inBlock,
  isDestinationTranslated,
  isFamily,
  isLocalAddress,
  LOOPBACK,
  RAW,
  SRCNAT,
  type TableLayout,
} from '../../../nft/index.ts';
import { fingerprint } from '../../protocol/fingerprint.ts';
import { POD_SETS, POD_TABLE, type PodSetKind, podSet } from './pod-table.ts';

/*
 * Priorities. When several tables would translate a packet, the one with the lowest priority decides and the kernel skips
 * the others. A Service is for one address, a host port as a rule for all addresses of the node; so ours come one step
 * behind the place (-100 and 100) of kube-proxy, in whatever mode, and of this program's own dataplanes.
 */
const AFTER_DSTNAT = DSTNAT + 1;
const AFTER_SRCNAT = SRCNAT + 1;

/** How many registers the name of a link takes. */
const IFNAME_WORDS = 4;

/** Those of host ports. */
const PROTOCOLS: readonly IpProtocol[] = ['TCP', 'UDP', 'SCTP'];
const MULTICAST: Record<IpFamily, Cidr> = { IPv4: parseCidr('224.0.0.0/4'), IPv6: parseCidr('ff00::/8') };

const masquerade: Expression = { kind: 'masquerade', flags: ['random-fully'] };
const isToThisNode = isLocalAddress('daddr');

const CHAINS: readonly ChainWithRules[] = [
  {
    chain: podChain('host-ports'),
    rules: [
      // What is sent to ::1 cannot leave the node; it is for the node's own programs.
      [...isTo(LOOPBACK.IPv6), returnToCaller],
      ...IP_FAMILIES.flatMap((family) => [
        translate(family, 'address-ports', [payload.daddr(family), meta('l4proto', addressRegisters(family))]),
        translate(family, 'ports', [meta('l4proto')]),
      ]),
    ],
  },
  {
    chain: podChain('prerouting', { type: 'nat', hook: 'prerouting', priority: AFTER_DSTNAT }),
    rules: [[...isToThisNode, jump('host-ports')]],
  },
  {
    chain: podChain('output', { type: 'nat', hook: 'output', priority: AFTER_DSTNAT }),
    rules: [[...isToThisNode, jump('host-ports')]],
  },
  {
    chain: podChain('hairpin'),
    rules: IP_FAMILIES.flatMap((family) => PROTOCOLS.map((protocol) => [...isHairpin(family, protocol), masquerade])),
  },
  {
    chain: podChain('postrouting', { type: 'nat', hook: 'postrouting', priority: AFTER_SRCNAT }),
    rules: [
      [...isDestinationTranslated(), jump('hairpin')],
      ...IP_FAMILIES.flatMap((family) => [
        [...isTo(MULTICAST[family]), returnToCaller],
        [...isFamily(family), payload.saddr(family), lookup(podSet('masquerade', family).name, { to: 'verdict' })],
      ]),
    ],
  },
  {
    // For host ports on 127.0.0.1 the links to pods must route that address (route_localnet). It has no business on any
    // wire, and a pod could reach by it what the node's programs offer to the node alone.
    chain: podChain('localnet', { type: 'filter', hook: 'prerouting', priority: RAW }),
    rules: [[meta('iifname'), cmp.notEqual(interfaceName('lo')), ...isTo(LOOPBACK.IPv4), drop]],
  },
];

/** What is always there. */
export const POD_LAYOUT: TableLayout = { table: POD_TABLE, sets: POD_SETS, chains: CHAINS };

/** Drops what pods with an ingress policy send to each other, as far as that of the receiver refuses it. */
export const INGRESS_CHAIN: ChainWithRules = {
  chain: podChain('ingress-policy', { type: 'filter', hook: 'forward', priority: FILTER }),
  rules: IP_FAMILIES.flatMap((family) => {
    const isFrom = isOf('ingress-policy', family, 'iifname', payload.saddr);
    return [
      [...isFamily(family), ...isFrom, ...isOf('ingress-isolated', family, 'oifname', payload.daddr), drop],
      // To a pod of the bridge that it comes from.
      [...isFamily(family), ...isOf('ingress-policy', family, 'iifname', payload.daddr), returnToCaller],
      [...isFamily(family), ...isFrom, ...isOf('ingress-policy', family, 'oifname', payload.daddr), drop],
    ];
  }),
};

/**
 * The chain for pods of one subnet: what they send is masqueraded when it leaves the subnet, and goes to none of the exceptions.
 *
 * `masquerade-10.244.1.0/24`, host bits of the subnet do not matter; with exceptions `masquerade-10.244.1.0/24-but-1f0ce4a2`: pods that
 * were made with others have a chain of their own.
 */
export function masqueradeChain({ address, prefixLength }: Cidr, except: readonly Cidr[] = []): ChainWithRules {
  const subnet = { address: networkOf(address, prefixLength), prefixLength };
  const others = except.filter((cidr) => cidr.address.family === address.family);
  const but = others.length > 0 ? `-but-${fingerprint(others.map(formatCidr).join(' ')).toString(16)}` : '';
  return {
    // Names of nft have no colons.
    chain: podChain(`masquerade-${formatCidr(subnet).replaceAll(':', '-')}${but}`),
    rules: [...[subnet, ...others].map((block) => [...isTo(block), returnToCaller]), [masquerade]],
  };
}

function podChain(name: string, base?: BaseChain): NftChain {
  return { kind: 'chain', family: POD_TABLE.family, table: POD_TABLE.name, name, ...(base && { base }) };
}

/** `LINK . ADDRESS @SET` */
function isOf(
  set: PodSetKind,
  family: IpFamily,
  link: 'iifname' | 'oifname',
  address: typeof payload.saddr,
): Expression[] {
  return [meta(link), address(family, IFNAME_WORDS), lookup(podSet(set, family).name)];
}

/** `ip daddr BLOCK` */
function isTo(block: Cidr): Expression[] {
  return [...isFamily(block.address.family), ...inBlock('daddr', block)];
}

/**
 * `dnat to KEY . th dport map @SET`
 *
 * @param key loads of what comes before the port, into consecutive registers from 0 on
 */
function translate(family: IpFamily, set: PodSetKind, key: readonly Expression[]): Expression[] {
  const portAt = set === 'ports' ? 1 : addressRegisters(family) + 1;
  return [
    ...isFamily(family),
    ...key,
    payload.dport(portAt),
    lookup(podSet(set, family).name, { to: 0 }),
    { kind: 'nat', type: 'dnat', family: nftFamily(family), address: 0, port: addressRegisters(family) },
  ];
}

/**
 * `meta l4proto PROTOCOL meta l4proto . ct original proto-dst . ip daddr . ip saddr @hairpin`. The protocol is in the key; before it as
 * well, since `nft` reads a port of conntrack only where the protocol is known.
 */
function isHairpin(family: IpFamily, protocol: IpProtocol): Expression[] {
  return [
    ...isFamily(family),
    meta('l4proto'),
    cmp.equal(Uint8Array.of(IP_PROTOCOLS[protocol])),
    meta('l4proto'),
    ct('proto-dst', 1, 'original'),
    payload.daddr(family, 2),
    payload.saddr(family, 2 + addressRegisters(family)),
    lookup(podSet('hairpin', family).name),
  ];
}
