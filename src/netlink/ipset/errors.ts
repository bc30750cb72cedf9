import type { ErrnoMeaning } from '../../core/index.ts';

/** enum ipset_errno of <linux/netfilter/ipset/ip_set.h>, from IPSET_ERR_PRIVATE + 1 on. */
const COMMON: readonly (readonly [name: string, text: string])[] = [
  ['IPSET_ERR_PROTOCOL', 'the kernel does not accept the message for this type of set'],
  ['IPSET_ERR_FIND_TYPE', 'the kernel does not know this type, revision or family of sets'],
  ['IPSET_ERR_MAX_SETS', 'no more sets can be made'],
  ['IPSET_ERR_BUSY', 'the set is in use by the kernel'],
  ['IPSET_ERR_EXIST_SETNAME2', 'a set of the new name exists already'],
  ['IPSET_ERR_TYPE_MISMATCH', 'the two sets are of different types'],
  ['IPSET_ERR_EXIST', 'the member is already there, or the one to delete is not'],
  ['IPSET_ERR_INVALID_CIDR', 'the prefix length is not possible'],
  ['IPSET_ERR_INVALID_NETMASK', 'the netmask is not possible'],
  ['IPSET_ERR_INVALID_FAMILY', 'the type of set has no such family'],
  ['IPSET_ERR_TIMEOUT', 'the set was made without timeouts'],
  ['IPSET_ERR_REFERENCED', 'rules or other sets use the set'],
  ['IPSET_ERR_IPADDR_IPV4', 'an IPv4 address is missing or malformed'],
  ['IPSET_ERR_IPADDR_IPV6', 'an IPv6 address is missing or malformed'],
  ['IPSET_ERR_COUNTER', 'the set was made without counters'],
  ['IPSET_ERR_COMMENT', 'the set was made without comments'],
  ['IPSET_ERR_INVALID_MARKMASK', 'the mark mask is not possible'],
  ['IPSET_ERR_SKBINFO', 'the set was made without marks (skbinfo)'],
];

/** From IPSET_ERR_TYPE_SPECIFIC on: each kind of set counts its own. The names are those of ip_set_hash.h. */
const OF_TYPES: typeof COMMON = [
  ['IPSET_ERR_HASH_FULL', 'the set is full, or (bitmaps) the member lies outside its range'],
  ['IPSET_ERR_HASH_ELEM', 'such a member is not possible, or (bitmaps) the range is too large'],
  ['IPSET_ERR_INVALID_PROTO', 'the protocol is not possible'],
  ['IPSET_ERR_MISSING_PROTO', 'the protocol is missing'],
  ['IPSET_ERR_HASH_RANGE_UNSUPPORTED', 'ranges are not possible'],
  ['IPSET_ERR_HASH_RANGE', 'the range is not possible'],
];

const IPSET_ERR_PRIVATE = 4096;
const IPSET_ERR_TYPE_SPECIFIC = 4352;

/** What the errnos of ipset mean that are no errnos elsewhere. */
export const IPSET_ERRORS: ReadonlyMap<number, ErrnoMeaning> = new Map([
  ...COMMON.map(([name, text], index) => [IPSET_ERR_PRIVATE + 1 + index, { name, text }] as const),
  ...OF_TYPES.map(([name, text], index) => [IPSET_ERR_TYPE_SPECIFIC + index, { name, text }] as const),
]);
