import { setTimeout as delay } from 'node:timers/promises';
import { withApiCluster } from '../api-cluster.ts';
import { oursAtMost, report } from '../report/index.ts';
import { firstSync, longestPause } from './measured-start.ts';
import { processorMs } from './process-figures.ts';

const SERVICES = 10_000;
/** After the second time that memory is given back. */
const BEGUN_MS = 70_000;
/** V8 looks up to three times whether memory can be given back when nothing was collected for 100 s, once after each start. */
const SETTLED_MS = 210_000;
/** More than two of the agent's checks of what is in the kernel. */
const WATCHED_SECONDS = 300;

/**
 * What the built kube-proxy costs with 10,000 Services of ten endpoints of which none changes, in mode nftables: processor time
 * over five minutes, checks included, and how late its event loop was at most, its start included (a bound of its own histogram).
 *
 * @param seconds how long it is watched. @default five minutes
 * @throws when that is no number of seconds
 */
export async function benchRest(seconds = `${WATCHED_SECONDS}`): Promise<void> {
  if (!/^[1-9]\d*$/.test(seconds))
    throw new Error(`Cannot watch an agent at rest for "${seconds}": a number of seconds is needed`);
  await withApiCluster(SERVICES, async ({ node, kubeconfig }) => {
    const flags = ['--kubeconfig', kubeconfig, '--proxy-mode', 'nftables'];
    const agent = await node.startAgent({ program: 'kube-proxy', until: 'started', flags });
    await firstSync(agent);
    await delay(BEGUN_MS);
    const begun = processorMs(agent.pid);
    await delay(SETTLED_MS - BEGUN_MS);
    const [before, began] = [processorMs(agent.pid), performance.now()];
    await delay(Number(seconds) * 1000);
    const share = ((processorMs(agent.pid) - before) / (performance.now() - began)) * 100;
    const pause = longestPause(await agent.metrics());
    await agent.stop();
    const noPeer = { peer: undefined, peerName: '' };
    report(`rest, ${SERVICES} x 10, nftables`, [
      {
        what: 'from 70 to 210 s after the first sync, V8 looking for garbage',
        unit: 'ms',
        ours: before - begun,
        ...noPeer,
      },
      {
        what: `of a core, over the ${seconds} s that follow`,
        unit: '%',
        ours: share,
        ...noPeer,
        target: oursAtMost(0.3),
      },
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
