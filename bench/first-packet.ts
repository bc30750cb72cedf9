import { useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import { type Figure, oursAtMost, report, type Target } from './report/index.ts';
import { CLIENTS, type Client, countRulesMet } from './rules-met.ts';

const SERVICES = 10_000;
/** Each chooses endpoints anew: what is rare is seen too. */
const COUNTING_ROUNDS = 3;
const ENDPOINTS = 10;
/** What leaves the node's pods is looked at first, so the node's own packets meet one rule more. */
const MEAN: Readonly<Record<Client, Target>> = {
  'a pod of the node': oursAtMost(24),
  'the node itself': oursAtMost(25, 'goal 24'),
};

/** How many rules a first packet meets, counted by the kernel. What that takes: `packets`. */
export async function benchFirstPacket(): Promise<void> {
  useOwnLockFile();
  const counts = await countRulesMet({ services: SERVICES, endpoints: ENDPOINTS, rounds: COUNTING_ROUNDS });
  // Upstream: the jump to KUBE-SERVICES, half of that or all of it, the rule for masquerading, half of the endpoints or
  // all of them, two rules of an endpoint, and two rules of postrouting.
  const peerName = 'upstream’s layout, computed';
  const figures = CLIENTS.flatMap((client): Figure[] => {
    const met = counts[client];
    const mean = met.reduce((sum, count) => sum + count, 0) / met.length;
    const worst = met.reduce((most, count) => Math.max(most, count), 0);
    const what = (which: string) => `nat rules met from ${client}, counted, ${which}`;
    return [
      {
        what: what('mean'),
        ...(client === CLIENTS[0] && {
          headline: `Rules the first packet of a connection meets, ${SERVICES} Services, iptables`,
        }),
        unit: '',
        ours: mean,
        target: MEAN[client],
        peer: 1 + SERVICES / 2 + 1 + ENDPOINTS / 2 + 2 + 2,
        peerName,
      },
      {
        what: what('worst'),
        unit: '',
        ours: worst,
        target: oursAtMost(48),
        peer: 1 + SERVICES + 1 + ENDPOINTS + 2 + 2,
        peerName,
      },
    ];
  });
  report(`first-packet-rules, ${SERVICES} x ${ENDPOINTS}, ${SERVICES * COUNTING_ROUNDS} connects each`, figures);
}
