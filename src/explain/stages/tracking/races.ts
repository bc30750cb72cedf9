import type { NodeView } from '../../node/index.ts';
import type { Asked } from '../asked.ts';
import type { Report } from '../report.ts';
import { countedLately } from './lately.ts';

/**
 * Looks whether packets of one UDP socket raced for an entry. Since 5.0 the kernel lets both through, whichever endpoints were
 * chosen for them, and counts `clashres`; what it cannot join it drops, and counts `insert_failed` (nf_ct_resolve_clash,
 * net/netfilter/nf_conntrack_core.c).
 */
export function lookAtRaces({ target, knowledge }: Asked, node: NodeView, report: Report): void {
  const lately = target.protocol === 'UDP' && target.service ? countedLately(knowledge, node) : undefined;
  if (!lately) return;
  const [dropped, joined] = [lately.by('insert_failed'), lately.by('clashres')];
  const since = `in the last ${lately.seconds} s, of all flows`;
  if (dropped + joined > 0) {
    const value = `${dropped}, ${joined} ${since}`;
    report.stage('conntrack', 'ok', 'packets raced for an entry', [
      { source: 'conntrack', object: 'insert_failed, clashres', value },
    ]);
  }
  if (dropped === 0) return;
  const text = `${dropped} packets were dropped ${since}, because another one had taken their entry (${joined} were let through): of two that a socket sends at once, as a resolver for A and AAAA, one is lost`;
  report.warn('insert-race', text);
}
