import { setTimeout as delay } from 'node:timers/promises';
import { claim } from './claim.ts';
import { type Cluster, WEB_POD_CIDR, WEB_PODS, WEB_PORT } from './cluster.ts';
import type { Screen } from './screen.ts';

/** The route is made within milliseconds; the time limit only ends the wait. */
const LIMIT_MS = 10_000;

/** Shows the route to the pods of the other node, and a request along it. */
export async function showOtherNode(screen: Screen, { node, client }: Cluster): Promise<void> {
  const [{ name, ip }] = WEB_PODS;
  screen.heading(`A request from the client pod on node-1 to the pod ${name} on node-2, ${ip}`);
  screen.doing('One connection');
  const deadline = Date.now() + LIMIT_MS;
  let outcome = await client.connect({ ip, port: WEB_PORT });
  while (outcome.kind !== 'answered' && Date.now() < deadline) {
    await delay(50);
    outcome = await client.connect({ ip, port: WEB_PORT });
  }
  const route = node.namespace.run('ip', 'route', 'show', WEB_POD_CIDR).trim();
  screen.line(screen.paint('cyan', route));
  screen.line();
  claim(route.includes('proto 78'), 'node-1 has a route of nodeplane’s to the pods of node-2', route);
  claim(
    outcome.kind === 'answered' && outcome.by === name && outcome.source === client.ip(),
    `${name} answers a pod of another node and sees that pod’s own address ${client.ip()}`,
    outcome,
  );
  screen.done(`answered, by this route of node-1; ${name} saw the client’s own address, ${client.ip()}`);
}
