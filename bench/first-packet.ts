import { useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import { oursAtMost, report } from './report/index.ts';
import { countRulesMet } from './rules-met.ts';

const SERVICES = 10_000;
/** Each chooses endpoints anew: what is rare is seen too. */
const COUNTING_ROUNDS = 3;
const ENDPOINTS = 10;

/** How many rules a first packet meets, counted by the kernel. What that takes: `packets`. */
export async function benchFirstPacket(): Promise<void> {
  useOwnLockFile();
  const met = await countRulesMet(SERVICES, ENDPOINTS, COUNTING_ROUNDS);
  const mean = met.reduce((sum, count) => sum + count, 0) / met.length;
  const worst = met.reduce((most, count) => Math.max(most, count), 0);
  const what = (which: string) => `nat rules met, counted, ${which}`;
  // Upstream: the jump to KUBE-SERVICES, half of that or all of it, the rule for masquerading, half of the endpoints or
  // all of them, two rules of an endpoint, and two rules of postrouting.
  const peerName = 'upstream’s layout, computed';
  report(`first-packet-rules, ${SERVICES} x ${ENDPOINTS}, ${met.length} connects`, [
    {
      what: what('mean'),
      headline: `Rules the first packet of a connection meets, ${SERVICES} Services, iptables`,
      unit: '',
      ours: mean,
      target: oursAtMost(24),
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
  ]);
}
