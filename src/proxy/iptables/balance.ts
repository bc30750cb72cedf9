import { type ProtocolWord, protocolWord, type Steps } from '../../core/index.ts';
import type { Endpoint, ServicePortPlan } from '../index.ts';
import { type Chain, formatChance, formatRule } from '../rules/index.ts';
import { endpointChainName } from './names.ts';

/** The rules that pick one of `endpoints`: the body of a KUBE-SVC-… or KUBE-SVL-… chain. */
export function balanceRules(port: ServicePortPlan, endpoints: readonly Endpoint[]): Steps<string[]> {
  return port.affinitySeconds > 0 ? stickyRules(port, endpoints) : plainRules(port, endpoints);
}

/** Without affinity an endpoint is one rule. The first says whom the chain belongs to, once. */
function* plainRules(port: ServicePortPlan, endpoints: readonly Endpoint[]): Steps<string[]> {
  const rules: string[] = [];
  for (const [index, endpoint] of endpoints.entries()) {
    const rule = formatRule({
      protocol: protocolWord(port.protocol),
      comment: index === 0 ? port.name : undefined,
      match: chance(endpoints.length - index),
      target: destinationOf(endpoint),
    });
    rules.push(rule);
    yield;
  }
  return rules;
}

/** With ClientIP affinity: first the endpoint that remembers this client, else a random one that then remembers it. */
function* stickyRules(port: ServicePortPlan, endpoints: readonly Endpoint[]): Steps<string[]> {
  const protocol = protocolWord(port.protocol);
  const remembered: string[] = [];
  const chosen: string[] = [];
  for (const [index, endpoint] of endpoints.entries()) {
    const chain = endpointChainName(port.name, protocol, endpoint.key);
    const comment = `${port.name} -> ${endpoint.key}`;
    const target = `-j ${chain}`;
    const known = recent(port, `--rcheck --seconds ${port.affinitySeconds} --reap`, chain);
    remembered.push(formatRule({ comment, match: known, target }));
    chosen.push(formatRule({ comment, match: chance(endpoints.length - index), target }));
    yield;
  }
  return [...remembered, ...chosen];
}

/** The KUBE-SEP-… chains a port with affinity needs; none without. */
export function* endpointChains(
  port: ServicePortPlan,
  endpoints: Iterable<Endpoint>,
  owner: string,
): Steps<ReadonlyMap<string, Chain>> {
  const chains = new Map<string, Chain>();
  if (port.affinitySeconds === 0) return chains;
  const protocol: ProtocolWord = protocolWord(port.protocol);
  for (const endpoint of endpoints) {
    const name = endpointChainName(port.name, protocol, endpoint.key);
    const rule = formatRule({
      protocol,
      comment: port.name,
      match: recent(port, '--set', name),
      target: destinationOf(endpoint),
    });
    chains.set(name, { rules: [rule], owner });
    yield;
  }
  return chains;
}

function destinationOf({ key }: Endpoint): string {
  return `-j DNAT --to-destination ${key}`;
}

/** The list of clients is named like the chain; `--mask` and `--rsource` are iptables-save's spelling of the defaults. */
function recent(port: ServicePortPlan, action: string, list: string): string {
  const mask = port.clusterIp.family === 'IPv4' ? '255.255.255.255' : 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff';
  return `-m recent ${action} --name ${list} --mask ${mask} --rsource`;
}

/**
 * Matches one packet in `remaining`; the last of a list needs no dice. Given to the first, second, … of n endpoints as
 * 1/n, 1/(n-1), … it makes the choice uniform. The kernel keeps the chance in units of 2^-31 (xt_statistic.h) and
 * iptables-save prints those.
 */
function chance(remaining: number): string | undefined {
  if (remaining === 1) return undefined;
  let text = chances.get(remaining);
  if (text === undefined) {
    text = `-m statistic --mode random --probability ${formatChance(Math.round(2 ** 31 / remaining))}`;
    chances.set(remaining, text);
  }
  return text;
}

/** The same few for all Services: formatting such a number is slow. */
const chances = new Map<number, string>();
