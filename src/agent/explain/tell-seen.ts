import { formatIp, ipProtocolName } from '../../core/index.ts';
import type { SeenByAgent, SeenFlow } from '../../explain/index.ts';
import type { Evidence, UnansweredFlow } from '../evidence/index.ts';
import { programText } from '../status/words.ts';
import { TRACE_TABLE } from '../trace/trace-table.ts';

/**
 * What the agent has seen, for who asks now.
 *
 * @param age seconds since a moment of the clock that the evidence has
 */
export function tellSeen(
  evidence: Pick<Evidence, 'unanswered' | 'ruleChanges' | 'gaps'>,
  age: (at: number) => number,
): SeenByAgent {
  // A live trace comes and goes with its table, and decides nothing.
  const changes = evidence.ruleChanges().filter(({ changes: all }) => all.some(({ table }) => table !== TRACE_TABLE));
  return {
    unanswered: evidence.unanswered().flatMap((flow) => seenFlow(flow, age)),
    changes: changes.map(({ at, program, pid, what, changes: all }) => ({
      secondsAgo: age(at),
      by: programText({ program, pid }),
      what,
      places: all.map(({ family, table, name = null }) => ({ table: `${family} ${table}`, name })),
    })),
    gaps: evidence.gaps(),
  };
}

/** None for protocols that no Service has: nobody can ask for them. */
function seenFlow(flow: UnansweredFlow, age: (at: number) => number): SeenFlow[] {
  const { at, source, destination, destinationPort: port, endpoint } = flow;
  const protocol = ipProtocolName(flow.protocol);
  if (!protocol) return [];
  return [
    {
      secondsAgo: age(at),
      protocol,
      source: formatIp(source),
      destination: formatIp(destination),
      port,
      endpoint: endpoint ? { address: formatIp(endpoint.address), port: endpoint.port } : null,
    },
  ];
}
