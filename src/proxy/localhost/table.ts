import { addressBits, type IpFamily } from '../../core/index.ts';
import {
  type BaseChain,
  cmp,
  ct,
  drop,
  type Expression,
  immediate,
  interfaceName,
  jump,
  lookup,
  meta,
  type NftChain,
  nftFamily,
  payload,
  setPayload,
  type TableRef,
} from '../../netlink/nftables/index.ts';
import {
  addressIn,
  type ChainWithRules,
  FILTER,
  inLoopback,
  isNew,
  isSourceTranslated,
  MANGLE,
  RAW,
  rejections,
  SRCNAT,
  type TableLayout,
} from '../../nft/index.ts';
import { LOCALHOST_STAND_INS } from '../index.ts';

/*
 * The rules that let a process of the node reach NodePorts at 127.0.0.1 and ::1, without route_localnet.
 *
 * The kernel routes no packet from a loopback address out of the node, and takes none to or from one that comes in from
 * elsewhere. Both are decided where a packet is routed; connection tracking and translation do not mind. So around each
 * of these places loopback addresses are replaced by the stand-in, which is an ordinary local address to the kernel, and
 * put back from what connection tracking remembers. Numbers are priorities:
 *
 *   OUTPUT       -200 connection tracking: 127.0.0.1:x -> 127.0.0.1:30080
 *                -150 substitute: STAND-IN:x -> STAND-IN:30080
 *                -100 the dataplane finds a NodePort: STAND-IN:x -> ENDPOINT, which can be routed
 *                 -50 restore: what nobody translated goes on as 127.0.0.1:x -> 127.0.0.1:30080
 *   POSTROUTING   100 the dataplane masquerades: NODE:y -> ENDPOINT
 *   PREROUTING   -100 its answer: ENDPOINT -> 127.0.0.1:x, which could not be routed
 *                 -50 answers: ENDPOINT -> STAND-IN:x
 *                     an endpoint of this node answers by lo, and had its destination back in OUTPUT
 *   INPUT           0 refuse: what was restored, for the NodePort has no endpoint
 *                 100 127.0.0.1:30080 -> STAND-IN:x
 *                 150 deliver: 127.0.0.1:30080 -> 127.0.0.1:x
 *
 * All state is that of connection tracking: connections outlast the agent, and the rules as well.
 */

const TABLE_NAME = 'nodeplane-localhost';
const NODE_PORTS = 'nodeports';

/** Behind the translation of destinations, by the node's own pod network (-99) too, and before any filter. */
const TRANSLATED = -50;
/** Behind the translation of sources. */
const DELIVERED = SRCNAT + 50;

/** `ct original ip saddr` and the like. */
const ORIGINAL = {
  IPv4: { saddr: 'saddr-ip', daddr: 'daddr-ip' },
  IPv6: { saddr: 'saddr-ip6', daddr: 'daddr-ip6' },
} as const;

/** IP_CT_DIR_REPLY of <linux/netfilter/nf_conntrack_tuple_common.h>. */
const REPLY = Uint8Array.of(1);

/** The table of one family, in the namespace of whoever commits it. */
export function localhostTable(family: IpFamily): TableRef {
  return { kind: 'table', family: nftFamily(family), name: TABLE_NAME };
}

/** The set of NodePorts in the table: `inet_proto . inet_service`. */
export function nodePortSet(family: IpFamily) {
  return { kind: 'set', family: nftFamily(family), table: TABLE_NAME, name: NODE_PORTS } as const;
}

/** The table with all but the elements of its set. */
export function localhostLayout(family: IpFamily): TableLayout {
  const table = localhostTable(family);
  const standIn = LOCALHOST_STAND_INS[family];
  const toStandIn = addressIn('daddr', { address: standIn, prefixLength: addressBits(family) }, '==');
  const toLoopback = inLoopback('daddr', family);
  const toNodePort = [...toLoopback, ...isNew(), meta('l4proto'), payload.dport(1), lookup(NODE_PORTS)];
  const notFromHere = [meta('iifname'), cmp.notEqual(interfaceName('lo'))];
  const original = ORIGINAL[family];
  /** `ip WHICH set ct original ip FIELD` */
  const restore = (which: 'saddr' | 'daddr', field: 'saddr' | 'daddr'): Expression[] => [
    ct(original[field], 0, 'original'),
    setPayload[which](family),
  ];
  const replace = (which: 'saddr' | 'daddr') => [immediate(standIn.bytes), setPayload[which](family)];
  const chain = (name: string, rules: ChainWithRules['rules'], place?: HookPlace) => chainOf(table, name, rules, place);
  return {
    table,
    sets: [{ ...nodePortSet(family), key: ['inet_proto', 'inet_service'], comment: 'NodePorts of Services' }],
    chains: [
      // Neither has any business on a wire, whoever has switched route_localnet on.
      chain(
        'guard',
        [
          [...notFromHere, ...toLoopback, drop],
          [...notFromHere, ...toStandIn, drop],
        ],
        {
          hook: 'prerouting',
          priority: RAW,
        },
      ),
      chain('replace-addresses', [replace('saddr'), replace('daddr')]),
      chain(
        'substitute',
        [
          // Of connections under way those that were translated, whether or not the Service is still there.
          [...toLoopback, ...isSourceTranslated(), jump('replace-addresses')],
          [...toNodePort, jump('replace-addresses')],
        ],
        { hook: 'output', priority: MANGLE },
      ),
      chain(
        'restore',
        [
          [...toStandIn, ...restore('saddr', 'saddr')],
          [...toStandIn, ...restore('daddr', 'daddr')],
        ],
        { hook: 'output', priority: TRANSLATED },
      ),
      chain(
        'answers',
        [
          // Those from this node too, whose addresses IPVS finds only in input. What is not translated is not touched.
          [
            ...toLoopback,
            ...inLoopback('saddr', family, '!='),
            ...isSourceTranslated(),
            ct('direction'),
            cmp.equal(REPLY),
            ...replace('daddr'),
          ],
        ],
        { hook: 'prerouting', priority: TRANSLATED },
      ),
      // Not in output: a sender whose packet is dropped there hears EPERM, which is no refusal.
      chain('refuse', [[...toNodePort, jump('refuse-packet')]], { hook: 'input', priority: FILTER }),
      chain('refuse-packet', rejections(family)),
      chain(
        'deliver',
        [
          [...toStandIn, ...restore('saddr', 'daddr')],
          [...toStandIn, ...restore('daddr', 'saddr')],
        ],
        { hook: 'input', priority: DELIVERED },
      ),
    ],
  };
}

type HookPlace = Pick<BaseChain, 'hook' | 'priority'>;

/** A chain at a hook, or without `place` one that others jump to. */
function chainOf(table: TableRef, name: string, rules: ChainWithRules['rules'], place?: HookPlace): ChainWithRules {
  const object: NftChain = { kind: 'chain', family: table.family, table: table.name, name };
  return { chain: place ? { ...object, base: { type: 'filter', ...place } } : object, rules };
}
