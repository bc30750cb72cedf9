import type { IpFamily } from '../../../core/index.ts';
import {
  type Expression,
  interfaceName,
  lookup,
  meta,
  nftFamily,
  payload,
  type Register,
  random,
} from '../../../netlink/nftables/index.ts';
import { addressIn, addressRegisters } from '../../../nft/index.ts';
import type { LocalDetector } from '../../index.ts';

/** A rule without its place. */
export interface RuleBody {
  readonly expressions: readonly Expression[];
  readonly comment?: string;
}

/** A rule of these expressions, which are evaluated in their order. */
export function rule(...parts: readonly (Expression | readonly Expression[])[]): RuleBody {
  return { expressions: parts.flat() };
}

/** The same rule with a comment, for people who list it. */
export function commented(comment: string, body: RuleBody): RuleBody {
  return { ...body, comment };
}

/** `meta l4proto . th dport` from register `to` on. */
export function loadPort(to: Register = 0): Expression[] {
  return [meta('l4proto', to), payload.dport(to + 1)];
}

/** `ip daddr . meta l4proto . th dport` from register 0 on. */
export function loadVip(family: IpFamily): Expression[] {
  return [payload.daddr(family), ...loadPort(addressRegisters(family))];
}

/** `KEY map @SET` gives an endpoint: `dnat to` it. */
export function dnatByMap(family: IpFamily, map: string): Expression[] {
  const port = addressRegisters(family);
  return [lookup(map, { to: 0 }), { kind: 'nat', type: 'dnat', family: nftFamily(family), address: 0, port }];
}

/** `numgen random mod N` in a register. */
export function anyOf(count: number, to: Register): Expression {
  return random(count, to);
}

/** Matches packets from pods, or with `!=` all others; undefined when pods cannot be told, as for kube-proxy. */
export function fromPods(detector: LocalDetector, op: '==' | '!='): Expression[] | undefined {
  switch (detector.kind) {
    case 'none':
      return undefined;
    case 'cidr':
      // Everything would be a pod.
      return detector.cidr.prefixLength === 0 ? undefined : addressIn('saddr', detector.cidr, op);
    case 'bridge':
      return [meta('iifname'), { kind: 'cmp', from: 0, op, data: interfaceName(detector.interfaceName) }];
    case 'prefix':
      // Compared as far as the prefix goes: `iifname "veth*"`.
      return [meta('iifname'), { kind: 'cmp', from: 0, op, data: Buffer.from(detector.interfacePrefix) }];
    default:
      return detector satisfies never;
  }
}
