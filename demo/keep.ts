import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { release } from '../test/lab/namespace.ts';
import { startWorker } from '../test/lab/traffic/worker-client.ts';
import { claim } from './claim.ts';
import { type Cluster, EMPTY_SERVICE, WEB_PODS, WEB_PORT, WEB_SERVICE } from './cluster.ts';
import type { Screen } from './screen.ts';
import { FOLDER, NAME_PREFIX, writeOwner } from './state.ts';

const START_TIMEOUT_MS = 10_000;

/** Hands the web pods over to a process that stays, and says how to explore and how to remove the demo. */
export async function keepUp(screen: Screen, cluster: Cluster): Promise<void> {
  screen.doing('Handing over');
  for (const pod of cluster.webPods) await pod.stopServing({ port: WEB_PORT });
  const log = openSync(join(FOLDER, 'pods.log'), 'a');
  const program = fileURLToPath(import.meta.url);
  // Inside their node's namespace, so that removing that namespace finds and ends it.
  const args = ['netns', 'exec', cluster.webNode.namespace.name, process.execPath, program, '--serve-pods'];
  const server = spawn('ip', args, { detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  server.unref();
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (const pod of cluster.webPods) {
    for (;;) {
      const { kind } = await cluster.client.connect({ ip: pod.ip(), port: WEB_PORT });
      if (kind === 'answered') break;
      claim(Date.now() < deadline, `${pod.name} is served again; see ${FOLDER}/pods.log`, kind);
      await delay(20);
    }
  }
  writeOwner(server.pid!);
  release();
  explain(screen, cluster);
}

/** What the process that stays does: serves the web pods until it is ended. */
export async function servePods(): Promise<void> {
  for (const { name } of WEB_PODS) {
    await startWorker({ netns: `/run/netns/${NAME_PREFIX}${name}`, name }).call('serve', { port: WEB_PORT });
  }
  setInterval(() => {}, 2 ** 30);
}

function explain(screen: Screen, { node, client, outside, agent, manifests }: Cluster): void {
  const fetch = (ip: string, port: number) =>
    existsSync('/usr/bin/curl')
      ? `curl http://${ip}${port === 80 ? '' : `:${port}`}`
      : `bash -c 'exec 3<>/dev/tcp/${ip}/${port}; echo >&3; head -1 <&3'`;
  const within = (namespace: string, command: string) => `ip netns exec ${namespace} ${command}`;
  const nodeplane = join(dirname(fileURLToPath(import.meta.url)), 'nodeplane');
  const nearby = relative(process.cwd(), nodeplane);
  const entries = [
    ['Ask the Service, from the client pod:', within(client.namespace.name, fetch(WEB_SERVICE.ip, WEB_SERVICE.port))],
    [
      'Ask the NodePort of node-1, from outside:',
      within(outside.namespace.name, fetch(node.ip(), WEB_SERVICE.nodePort)),
    ],
    ['Be refused:', within(client.namespace.name, fetch(EMPTY_SERVICE.ip, EMPTY_SERVICE.port))],
    ['See how node-1 stands, and one Service:', within(node.namespace.name, `${nodeplane} status`)],
    ['', within(node.namespace.name, `${nodeplane} services default/web`)],
    ['', within(node.namespace.name, fetch('127.0.0.1', 10249).replace(/:10249$/, ':10249/status'))],
    ['See the routes to the pods of other nodes:', within(node.namespace.name, 'ip route show proto 78')],
    ['See the rules:', within(node.namespace.name, 'nft list table ip nodeplane')],
    ['Change something, and watch what the agent of node-1 does:', `$EDITOR ${manifests}/web-endpoints.yaml`],
    ['', `tail -f ${agent.logFile}`],
    ['Remove it all:', `${nearby.startsWith('..') ? nodeplane : nearby} demo --remove`],
  ] as const;
  screen.heading('The demo stays up');
  for (const [what, command] of entries) {
    if (what !== '') screen.line(screen.paint('dim', what));
    screen.line(`  ${screen.paint('cyan', command)}`);
  }
}
