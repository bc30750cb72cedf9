import type { RoutesConfig } from '../../config/index.ts';
import { tunnelKind } from '../../routes/index.ts';
import type { Check } from '../check.ts';
import { presentProxies } from '../facts/present-proxy.ts';
import { chainsOf, type RuleSet, readRuleSets } from '../facts/rule-sets.ts';
import { fails, firstFew, ok, orUnread, warning } from '../finding.ts';
import { firewallsAmong } from './firewalls.ts';
import { forward } from './forward.ts';
import { neighbours, networks } from './neighbours.ts';

const variants: Check = {
  name: 'rules.iptables-variants',
  async look({ node }) {
    const { sets, unread } = await readRuleSets(node);
    const filled = new Map(
      ['nft', 'legacy'].map((variant) => [variant, sum(sets.filter((set) => set.variant === variant))]),
    );
    const [nft, legacy] = [filled.get('nft')!, filled.get('legacy')!];
    if (nft > 0 && legacy > 0) {
      return warning(
        `both variants of iptables have rules (nft ${nft}, legacy ${legacy}), and all of them apply`,
        'find out who writes the other ones (update-alternatives --display iptables), and move it to one variant',
      );
    }
    return orUnread(
      ok(nft + legacy === 0 ? 'iptables has no rules' : `only iptables-${nft > 0 ? 'nft' : 'legacy'} has rules`),
      unread,
    );
  },
};

/** Rules and chains of others' making: an empty table is nothing. */
function sum(sets: readonly RuleSet[]): number {
  return chainsIn(sets).reduce((count, { rules }) => count + rules.length, 0);
}

const chainsIn = (sets: readonly RuleSet[]) => sets.flatMap((set) => [...chainsOf(set)]);

const proxies: Check = {
  name: 'rules.other-proxy',
  async look({ node, config }) {
    const found = await presentProxies(node);
    const others = found.filter(({ by }) => by === 'kube-proxy');
    if (others.length === 0) {
      const ours = found.map(({ mode }) => `mode ${mode}`);
      return ok(ours.length === 0 ? 'no proxy has rules here' : `the rules of nodeplane are here (${ours.join(', ')})`);
    }
    const signs = others.map(({ mode, sign }) => `mode ${mode}: ${sign}`);
    return warning(
      `a kube-proxy has rules here (${firstFew(signs)})`,
      `the agent takes them over when it has all Services (mode ${config.mode}); end the kube-proxy before, or both write`,
    );
  },
};

const firewall: Check = {
  name: 'rules.firewall',
  async look({ node, config }) {
    const { sets, unread } = await readRuleSets(node);
    const found = firewallsAmong(sets, node.nftables().tables);
    if (found.length === 0) return orUnread(ok('no firewall that is known by its chains'), unread);
    const remedies = found.map(({ remedy }) => remedy).join('; ');
    return warning(
      `a firewall is at work: ${firstFew(found.map(({ name, place }) => `${name} (${place})`))}`,
      `let pods pass: ${remedies}${tunnelRemedy(config.routes)}`,
    );
  },
};

/** The routes may be the work of others. */
function tunnelRemedy(routes: RoutesConfig | undefined): string {
  if (!routes) return '; let other nodes reach the tunnel’s UDP port, if there is one';
  const kind = tunnelKind(routes);
  if (kind === undefined) return '';
  return `; let other nodes reach UDP port ${kind === 'vxlan' ? routes.port : routes.wireguard.port}, the tunnel’s`;
}

const ports: Check = {
  name: 'rules.ports',
  look({ node, config: { healthzBindAddress, metricsBindAddress, bindAddressHardFail } }) {
    const wanted = [
      { what: 'health', address: healthzBindAddress },
      { what: 'metrics', address: metricsBindAddress },
    ];
    const taken = wanted.flatMap(({ what, address }) => {
      const listener =
        address && node.listeners().find((one) => one.port === address.port && overlap(one.ip, address.ip));
      return listener
        ? [`${what} port ${address.port} is held by ${listener.process ?? 'a process that cannot be seen from here'}`]
        : [];
    });
    if (taken.length === 0) return ok('the health and metrics ports are free');
    const message = taken.join('; ');
    if (/nodeplane/.test(message))
      return warning(message, 'an agent runs already: fine for an upgrade, otherwise end it');
    return fails(
      `${message}: perhaps another proxy, and two proxies undo each other’s work`,
      `end it, or choose other ports (--healthz-bind-address, --metrics-bind-address)${bindAddressHardFail ? '' : '; the agent would run without'}`,
    );
  },
};

/** Whether sockets at these addresses and one port are in each other's way: the unspecified one of IPv6 takes IPv4 too. */
function overlap(a: { readonly bytes: Uint8Array }, b: { readonly bytes: Uint8Array }): boolean {
  const isAny = ({ bytes }: { readonly bytes: Uint8Array }) => bytes.every((byte) => byte === 0);
  return isAny(a) || isAny(b) || Buffer.compare(a.bytes, b.bytes) === 0;
}

export const RULE_CHECKS: readonly Check[] = [variants, proxies, forward, firewall, networks, neighbours, ports];
