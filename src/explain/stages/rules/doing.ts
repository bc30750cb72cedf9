import type { Expression } from '../../../netlink/nftables/index.ts';
import type { ProxyMode } from '../../../proxy/index.ts';
import type { Step } from '../../walk/index.ts';
import { isOurs, showing } from '../place.ts';

// What single rules do to packets that go on.

/** Whether the rule of a step does something. */
export type Doing = (step: Step) => boolean;

/** Connection tracking does not see the packet: NOTRACK and `CT --notrack` of iptables, `notrack` of nftables. */
export const keepsOut = doing(['notrack'], /^(NOTRACK|CT --notrack)/);
export const translates = doing(['nat', 'masquerade', 'redirect'], /^([SD]NAT|MASQUERADE|REDIRECT|NETMAP)\b/);
export const marks = doing(['meta-set', 'ct-set'], /^(CONN)?MARK\b/);

/** @param target of iptables, with its options where they are known */
function doing(kinds: readonly Expression['kind'][], target: RegExp): Doing {
  return ({ rule }) => {
    if (!rule) return false;
    if ('text' in rule) return target.test(/ -j (.*)$/.exec(` ${rule.text}`)?.[1] ?? '');
    return rule.expressions.some((one) =>
      one.kind === 'target' ? target.test(one.name === 'CT' ? 'CT --notrack' : one.name) : kinds.includes(one.kind),
    );
  };
}

/** Command lines that show rules which were met: those first that do it, those of others before this agent's. */
export function showingThose(steps: readonly Step[], does: Doing, mode: ProxyMode): readonly string[] {
  const rank = (step: Step) => (does(step) ? 0 : 2) + (isOurs(step, mode) ? 1 : 0);
  return [...steps].sort((one, other) => rank(one) - rank(other)).map(showing);
}
