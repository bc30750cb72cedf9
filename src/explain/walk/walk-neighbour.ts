import { type Branch, walkAll } from '../choices.ts';
import { type Interface, type NeighbourMessage, Packet } from '../packet/index.ts';
import { askedOnce } from './asked-once.ts';
import type { Hook, Host, RuleSource, StationResult, Step } from './source.ts';
import { walkHook } from './walk-hook.ts';

/** How a message meets a host: it is for it, from it, or for somebody else on a bridge that shows its frames to rules. */
export type Crossing = 'in' | 'out' | 'bridged';

const HOOKS: Readonly<Record<Crossing, readonly Hook[]>> = {
  in: ['prerouting', 'input'],
  out: ['output', 'postrouting'],
  bridged: ['prerouting', 'forward', 'postrouting'],
};
/** As many ways as a walk of a packet has at most, of which chance has no part here. */
const MOST_WAYS = 256;

/**
 * Walks a message between neighbours of IPv6. Connection tracking leaves those alone (nf_conntrack_icmpv6_error,
 * net/netfilter/nf_conntrack_proto_icmpv6.c).
 *
 * @param on the link they are neighbours on
 * @returns what became of it on each way that is left open
 */
export function walkNeighbourMessage(
  message: NeighbourMessage,
  crossing: Crossing,
  on: Interface,
  sources: readonly RuleSource[],
  host: Host,
): readonly Branch<{ readonly end: StationResult; readonly steps: readonly Step[] }>[] {
  const asked = askedOnce(host);
  const walk = walkAll(
    (choose, meeting) => {
      const packet = new Packet(message);
      packet.connection = 'untracked';
      const situation = { packet, host: asked, choose, meeting };
      const steps: Step[] = [];
      for (const hook of HOOKS[crossing]) {
        packet.iif = crossing === 'out' ? undefined : on;
        packet.oif = hook === 'prerouting' || hook === 'input' ? undefined : on;
        packet.isIifSeen = !(crossing === 'bridged' && hook === 'postrouting');
        const end = walkHook<never>(hook, sources, situation, steps, () => undefined);
        if (end.kind !== 'accept') return { end, steps };
      }
      return { end: { kind: 'accept' } as const, steps };
    },
    { ways: MOST_WAYS },
  );
  return walk.branches;
}
