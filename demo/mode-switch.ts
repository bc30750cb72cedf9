import { setTimeout as delay } from 'node:timers/promises';
import { CONNECT_LIMIT_MS, claim } from './claim.ts';
import { type Cluster, WEB_SERVICE } from './cluster.ts';
import type { Screen } from './screen.ts';

const PER_SECOND = 300;
const SHOWN_LINES = 2;
/** Removing the old rules is the agent's work after its first sync. */
const LIMIT_MS = 10_000;

/** Restarts the agent in mode nftables under load: does any connection fail, and are the old rules gone? */
export async function showModeSwitch(screen: Screen, cluster: Cluster): Promise<void> {
  const { node, client } = cluster;
  screen.heading(
    `The agent of node-1 is restarted with --proxy-mode=nftables under ${PER_SECOND} new connections a second`,
  );
  const { ip, port } = WEB_SERVICE;
  const chainsBefore = serviceChains(cluster);
  claim(chainsBefore > 0, 'Services are iptables rules before the switch', chainsBefore);
  screen.doing('Switching');
  const load = await client.startLoad({ ip, port }, { perSecond: PER_SECOND, timeoutMs: CONNECT_LIMIT_MS });
  await cluster.restartAgent(['--proxy-mode', 'nftables']);
  const deadline = Date.now() + LIMIT_MS;
  while (serviceChains(cluster) > 0 && Date.now() < deadline) await delay(50);
  await delay(300);
  const { answered, failures } = await load.stop();

  const map = node.namespace.run('nft', 'list', 'map', 'ip', 'nodeplane', 'services');
  const lines = map.split('\n').filter((line) => line.includes(ip));
  for (const line of lines.slice(0, SHOWN_LINES))
    screen.line(screen.paint('cyan', line.replace(/^[\s\w=]*\{|[,}]\s*$/g, '').trim()));
  screen.line();
  claim(lines.length > 0, `Service web is an element of the map "services"`, map);
  claim(serviceChains(cluster) === 0, 'No chain of a Service is left in iptables', serviceChains(cluster));
  claim(failures.length === 0, 'No request fails while the mode changes', failures.slice(0, 3));
  screen.done(
    `${answered} requests, none failed; ${chainsBefore} iptables chains of Services are now elements of maps`,
  );
}

function serviceChains({ node }: Cluster): number {
  const saved = (['nft', 'legacy'] as const).map((variant) => node.iptablesSave(variant)).join('');
  return saved.match(/^:KUBE-S(?:VC|VL|EP)-/gm)?.length ?? 0;
}
