import type { Option } from '../parse-rule.ts';
import { type Blob, type BlobForm, iptablesOption } from './blob.ts';

/*
 * struct xt_set_info { u16 index; u8 dim, flags; }, the beginning of every match; <linux/netfilter/xt_set.h>. Bits of flags, of
 * <linux/netfilter/ipset/ip_set.h>: 0 turns it round, 1 to dim say of each part of the key whether it is the source's.
 */
const DIMENSIONS_AT = 2;
const FLAGS_AT = 3;
/** No set: IPSET_INVALID_ID. */
const NO_SET = 0xffff;
const RETURN_NOMATCH = 1 << 7;

/** `NAME src,dst` */
function setAndDirections(blob: Blob, at: number): string[] | undefined {
  const name = blob.context.setName(blob.u16(at));
  const directions = Array.from({ length: blob.u8(at + DIMENSIONS_AT) }, (_, part) =>
    blob.has(at + FLAGS_AT, 2 << part) ? 'src' : 'dst',
  );
  return name === undefined ? undefined : [name, directions.join(',')];
}

function match(blob: Blob): Option[] | undefined {
  const values = setAndDirections(blob, 0);
  if (values === undefined || blob.has(FLAGS_AT, RETURN_NOMATCH)) return undefined;
  return [iptablesOption('--match-set', values, blob.has(FLAGS_AT, 1))];
}

/** From revision 3 on with `ip_set_counter_match packets, bytes; u32 flags`, which compare counters; the two say in which byte by `op`. */
const counting =
  (...ops: readonly number[]) =>
  (blob: Blob): Option[] | undefined =>
    ops.some((at) => blob.u8(at) !== 0) || blob.u32(40) !== 0 ? undefined : match(blob);

/** Match `set`. */
export const SET_MATCH: readonly BlobForm[] = [
  { revisions: [1, 2], size: 4, decode: match },
  { revisions: [3], size: 44, decode: counting(8, 24) },
  { revisions: [4], size: 44, decode: counting(16, 32) },
];

const MAP_OPTIONS = [
  ['--map-mark', 1 << 8],
  ['--map-prio', 1 << 9],
  ['--map-queue', 1 << 10],
] as const;

/** xt_set_info_target_v1 and v2: `xt_set_info add_set, del_set; ...`. How long a member is to stay there is left out. */
function changing(blob: Blob): Option[] | undefined {
  const sets = (['--add-set', '--del-set'] as const).map((name, index): Option[] | undefined => {
    if (blob.u16(4 * index) === NO_SET) return [];
    const values = setAndDirections(blob, 4 * index);
    return values && [iptablesOption(name, values)];
  });
  return sets.includes(undefined) ? undefined : sets.flatMap((set) => set ?? []);
}

/** xt_set_info_target_v3: `xt_set_info add_set, del_set, map_set; u32 flags, timeout`. */
function mapping(blob: Blob): Option[] | undefined {
  const changed = changing(blob);
  if (blob.u16(8) === NO_SET) return changed;
  const values = setAndDirections(blob, 8);
  const flags = blob.u32(12);
  return (
    changed &&
    values && [
      ...changed,
      iptablesOption('--map-set', values),
      ...MAP_OPTIONS.filter(([, bit]) => (flags & bit) !== 0).map(([name]) => iptablesOption(name)),
    ]
  );
}

/** Target `SET`: of its options those that change packets. */
export const SET_TARGET: readonly BlobForm[] = [
  { revisions: [1, 2], size: 8, decode: changing },
  { revisions: [3], size: 20, decode: mapping },
];
