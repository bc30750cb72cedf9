// nodeplane-demo: two Kubernetes nodes without a control plane, made of network namespaces, shown at work. Run by `nodeplane demo`.
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { own, removeAll } from '../test/lab/namespace.ts';
import { showBalancing } from './balancing.ts';
import { ClaimFailed } from './claim.ts';
import { buildCluster } from './cluster.ts';
import { showEndpointRemoval } from './endpoint-removal.ts';
import { keepUp, servePods } from './keep.ts';
import { showModeSwitch } from './mode-switch.ts';
import { showNoEndpoints } from './no-endpoints.ts';
import { showOtherNode } from './other-node.ts';
import { createScreen, type Screen } from './screen.ts';
import { FOLDER, liveOwner, removeDemo, writeOwner } from './state.ts';
import { showStatus } from './status.ts';

/** Runs the command line; returns the exit status. */
async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { keep: { type: 'boolean' }, remove: { type: 'boolean' }, 'serve-pods': { type: 'boolean' } },
  });
  if (values['serve-pods']) {
    await servePods();
    return 0;
  }
  const screen = createScreen(process.stdout, process.env);
  const obstacle = values.remove ? rootOnly() : (rootOnly() ?? demoInTheWay());
  if (obstacle !== undefined) {
    screen.failed(obstacle);
    return 1;
  }
  if (values.remove) {
    const names = removeDemo();
    screen.done(names.length === 0 ? 'no demo was up' : `removed ${names.length} namespaces with all that ran in them`);
    return 0;
  }
  return await show(screen, values.keep ?? false);
}

/** The whole show. Everything it made is gone when it returns, unless it is to be kept and all went well. */
async function show(screen: Screen, keep: boolean): Promise<number> {
  own(removeDemo);
  removeDemo();
  writeOwner(process.pid);
  process.prependOnceListener('SIGINT', () => screen.failed('interrupted, cleaning up'));
  try {
    screen.heading('nodeplane demo: two Kubernetes nodes without a control plane, made of namespaces');
    const cluster = await buildCluster(screen, { keep });
    await showOtherNode(screen, cluster);
    await showBalancing(screen, cluster);
    await showEndpointRemoval(screen, cluster);
    await showNoEndpoints(screen, cluster);
    await showModeSwitch(screen, cluster);
    showStatus(screen, cluster);
    if (keep) {
      await keepUp(screen, cluster);
      return 0;
    }
    screen.heading('That was all true.');
    screen.doing('Cleaning up');
    await cluster.stop();
    removeAll();
    screen.done('everything removed again; to look around in it: nodeplane demo --keep');
    return 0;
  } catch (error) {
    // Ctrl-C also ends a program that was just running; its failure is then not worth a word.
    await delay(20);
    screen.failed(error instanceof ClaimFailed ? error.message : String(error));
    showAgentLogs(screen);
    removeAll();
    return 1;
  }
}

function rootOnly(): string | undefined {
  return process.getuid?.() === 0 ? undefined : 'The demo makes network namespaces and needs root: use sudo';
}

function demoInTheWay(): string | undefined {
  const pid = liveOwner();
  return pid === undefined
    ? undefined
    : `A demo is up already (process ${pid}): let it end, or remove it with "nodeplane demo --remove"`;
}

function showAgentLogs(screen: Screen): void {
  for (const node of ['node-1', 'node-2']) {
    const log = `${FOLDER}/agent-${node}.log`;
    if (!existsSync(log)) continue;
    screen.heading(`The end of the log of the agent on ${node}`);
    for (const line of readFileSync(log, 'utf8').trimEnd().split('\n').slice(-15)) screen.line(line);
  }
}

main(process.argv.slice(2)).then(
  (status) => {
    process.exitCode = status;
  },
  (error) => {
    process.stderr.write(`nodeplane-demo: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  },
);
