import { type Host, tally } from '../test/lab/lab.ts';
import { drawBars } from './bars.ts';
import { CONNECT_LIMIT_MS, claim } from './claim.ts';
import { type Cluster, WEB_PODS, WEB_SERVICE } from './cluster.ts';
import type { Screen } from './screen.ts';

const REQUESTS = 200;
/** Each pod is drawn with probability 1/3. 30 of 200 is five and a half standard deviations below the mean. */
const LEAST_PER_POD = 30;

/** Shows 200 requests to the ClusterIP and 200 to the NodePort spread over the pods. */
export async function showBalancing(screen: Screen, { client, outside, node }: Cluster): Promise<void> {
  const { ip, port, nodePort } = WEB_SERVICE;
  screen.heading(
    `${REQUESTS} requests from the client pod to Service web, ${ip}:${port}, whose pods are all on node-2`,
  );
  const inside = await spread(screen, client, { ip, port });
  claim(
    inside.length === 1 && inside[0] === client.ip(),
    `The web pods see the client pod’s own address ${client.ip()}`,
    inside,
  );
  screen.done(`all ${REQUESTS} answered; the web pods saw the client’s own address, ${client.ip()}`);

  screen.heading(`${REQUESTS} requests from outside to the NodePort of node-1, ${node.ip()}:${nodePort}`);
  const masqueraded = await spread(screen, outside, { ip: node.ip(), port: nodePort });
  const nodeAddresses: readonly string[] =
    node.namespace.run('ip', '-4', '-br', 'address', 'show').match(/[\d.]+(?=\/)/g) ?? [];
  claim(
    masqueraded.length === 1 && nodeAddresses.includes(masqueraded[0]!),
    `The web pods see an address of node-1 instead of ${outside.ip()}, so that answers come back through it`,
    masqueraded,
  );
  screen.done(`all ${REQUESTS} answered; the web pods saw the address of node-1, ${masqueraded[0]}`);
}

/** Makes the requests, draws who answered, checks that everyone did; returns the source addresses the pods saw. */
async function spread(screen: Screen, from: Host, target: { ip: string; port: number }): Promise<string[]> {
  screen.doing(`${REQUESTS} connections`);
  const { answers, failures, sources } = tally(
    await from.connectMany(target, REQUESTS, { concurrency: 40, timeoutMs: CONNECT_LIMIT_MS }),
  );
  drawBars(
    screen,
    WEB_PODS.map(({ name, ip }) => ({ label: name, detail: ip, count: answers[name] ?? 0 })),
  );
  screen.line();
  claim(Object.keys(failures).length === 0, `All ${REQUESTS} requests are answered`, failures);
  for (const { name } of WEB_PODS) {
    const count = answers[name] ?? 0;
    claim(count >= LEAST_PER_POD, `${name} gets at least ${LEAST_PER_POD} of ${REQUESTS} requests`, count);
  }
  return [...sources];
}
