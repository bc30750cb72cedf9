import { readAttributes } from '../../attribute.ts';
import {
  NF_ACCEPT,
  NF_DROP,
  NFPROTO_ARP,
  NFPROTO_BRIDGE,
  NFPROTO_INET,
  NFPROTO_NETDEV,
  NFTA_CHAIN,
  NFTA_DEVICE_PREFIX,
} from '../../uapi/nf-tables.ts';
import { nfgenmsg } from '../../uapi/nfnetlink.ts';
import { need } from '../expression/integers.ts';

/** NF_INET_INGRESS, <linux/netfilter.h>. */
const INET_INGRESS = 5;

/** A base chain beside the hooks that packets meet in their host: on a link (`ingress`, `egress`), inside of bridges, of ARP. */
export interface LinkChain {
  readonly family: 'netdev' | 'inet' | 'bridge' | 'arp';
  readonly table: string;
  readonly name: string;
  /** Names of links; one that ends with `*` is the beginning of names. Undefined: all bridges, all links that have ARP. */
  readonly links: readonly string[] | undefined;
  /** What becomes of those that no rule decides about. */
  readonly policy: 'accept' | 'drop';
}

/** All other families than these have their chains in hooks of the host; of `inet` some. */
const FAMILIES: Readonly<Record<number, LinkChain['family']>> = {
  [NFPROTO_INET]: 'inet',
  [NFPROTO_ARP]: 'arp',
  [NFPROTO_NETDEV]: 'netdev',
  [NFPROTO_BRIDGE]: 'bridge',
};

/** Undefined for all other chains, and for one that does nothing: without rules, it lets everything through. Throws ERR_NETLINK_DECODE. */
export function decodeLinkChain(payload: Uint8Array): LinkChain | undefined {
  const { nfgen_family: number } = nfgenmsg.decode(payload);
  const family = FAMILIES[number];
  if (!family) return undefined;
  const a = NFTA_CHAIN.decode(payload, nfgenmsg.size);
  const hook = a.NFTA_CHAIN_HOOK;
  if (!hook || (family === 'inet' && hook.NFTA_HOOK_HOOKNUM !== INET_INGRESS)) return undefined;
  if (a.NFTA_CHAIN_USE === 0 && a.NFTA_CHAIN_POLICY === NF_ACCEPT) return undefined;
  const policy = a.NFTA_CHAIN_POLICY === NF_DROP ? 'drop' : 'accept';
  const chain = { family, table: need(a, 'NFTA_CHAIN_TABLE'), name: a.NFTA_CHAIN_NAME ?? '', policy } as const;
  if (family === 'bridge' || family === 'arp') return { ...chain, links: undefined };
  const several = hook.NFTA_HOOK_DEVS ? readNames(hook.NFTA_HOOK_DEVS) : [];
  const links = hook.NFTA_HOOK_DEV === undefined ? several : [hook.NFTA_HOOK_DEV, ...several];
  return { ...chain, links: [...new Set(links)] };
}

function readNames(list: Uint8Array): string[] {
  return [...readAttributes(list, 0, 'NFTA_HOOK_DEVS')].map(({ type, value }) => {
    const name = Buffer.from(value).toString('latin1').replace(/\0.*$/s, '');
    return type === NFTA_DEVICE_PREFIX ? `${name}*` : name;
  });
}
