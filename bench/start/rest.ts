import { setTimeout as delay } from 'node:timers/promises';
import { withApiCluster } from '../api-cluster.ts';
import { oursAtMost, report } from '../report/index.ts';
import { firstSync, longestPause } from './measured-start.ts';
import { processorMs } from './process-figures.ts';

const SERVICES = 10_000;
/** After the second time that memory is given back. */
const SETTLED_MS = 70_000;
/** More than two of the agent's checks of what is in the kernel. */
const WATCHED_MS = 300_000;

/**
 * What the built kube-proxy costs with 10,000 Services of ten endpoints of which none changes, in mode nftables: processor time
 * over five minutes, checks included, and how late its event loop was at most, its start included (a bound of its own histogram).
 */
export function benchRest(): Promise<void> {
  return withApiCluster(SERVICES, async ({ node, kubeconfig }) => {
    const flags = ['--kubeconfig', kubeconfig, '--proxy-mode', 'nftables'];
    const agent = await node.startAgent({ program: 'kube-proxy', until: 'started', flags });
    await firstSync(agent);
    await delay(SETTLED_MS);
    const [before, began] = [processorMs(agent.pid), performance.now()];
    await delay(WATCHED_MS);
    const share = ((processorMs(agent.pid) - before) / (performance.now() - began)) * 100;
    const pause = longestPause(await agent.metrics());
    await agent.stop();
    const noPeer = { peer: undefined, peerName: '' };
    report(`rest, ${SERVICES} x 10, nftables`, [
      { what: 'of a core, over five minutes', unit: '%', ours: share, ...noPeer, target: oursAtMost(0.3) },
      {
        what: 'longest pause of the event loop since the start, at most',
        unit: 'ms',
        ours: pause,
        ...noPeer,
        target: oursAtMost(20),
      },
    ]);
  });
}
