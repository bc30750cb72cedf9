import { claim } from './claim.ts';
import { type Cluster, EMPTY_SERVICE } from './cluster.ts';
import type { Screen } from './screen.ts';

/** A client whose packets are dropped repeats its SYN only after a second: an answer before that was a real refusal. */
const AT_ONCE_MS = 500;

/** Shows that a Service without endpoints refuses instead of letting clients wait. */
export async function showNoEndpoints(screen: Screen, { client }: Cluster): Promise<void> {
  const { ip, port } = EMPTY_SERVICE;
  screen.heading(`A request to Service empty, ${ip}:${port}, which has no endpoints`);
  screen.doing('One connection');
  const outcome = await client.connect({ ip, port });
  claim(
    outcome.kind === 'refused' && outcome.ms < AT_ONCE_MS,
    'A Service without endpoints refuses connections at once',
    outcome,
  );
  screen.done(`refused after ${outcome.ms} ms`);
}
