import { type Command, Option } from 'commander';
import {
  agentAtWork,
  agentWrites,
  cleanup,
  cleanupRoutes,
  leaveToKubeProxy,
  noteLeft,
  type UninstallOptions,
  uninstallCni,
} from '../../agent/index.ts';
import { NODE_PATHS, NodeplaneError, plainText, Removals } from '../../core/index.ts';
import { writeOut } from '../standard-output.ts';
import { configOfNode } from './config-of-node.ts';
import { excludedCidrs } from './excluded-cidrs.ts';

interface Flags extends CniFlags {
  readonly cni?: boolean;
  readonly routes?: boolean;
  readonly routesOnly?: boolean;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly mode?: 'iptables' | 'nftables' | 'ipvs';
  readonly leaveKubeProxy?: boolean;
  readonly config?: string;
  readonly ipvsExcludeCidrs?: string;
  readonly kubeconfig?: string;
  readonly hostnameOverride?: string;
  readonly agentLockDir: string;
}

interface CniFlags {
  readonly cniBinDir: string;
  readonly cniConfDir: string;
  readonly cniDataDir: string;
  readonly cniSocket: string;
  readonly cniSpoolDir: string;
}

/** `nodeplane cleanup`: the uninstall; prints what it looked at. */
export function addCleanupCommand(program: Command): void {
  program
    .command('cleanup')
    .description('remove every rule of nodeplane and of kube-proxy from this machine, and nothing else')
    .option('--dry-run', 'list what would be removed, and what shows that it is ours; remove nothing')
    .addOption(
      new Option('--mode <mode>', 'what a proxy in this mode leaves, and no other').choices([
        'iptables',
        'nftables',
        'ipvs',
      ]),
    )
    .addOption(
      new Option(
        '--leave-kube-proxy',
        'remove only what a kube-proxy that runs here instead does not know; refused before it has rules',
      ).conflicts('mode'),
    )
    .option('--cni', 'remove the CNI plugin and its configuration too; refused while pods are attached')
    .option(
      '--force',
      'although an agent works on this node, which writes its rules again; with --cni, although pods are attached: their runtime cannot remove them afterwards',
    )
    .option('--agent-lock-dir <path>', 'as given to the agent, which is looked for there', NODE_PATHS.runDir)
    .option('--routes', 'remove the routes to pods on other nodes too: these cannot be reached from here then')
    .addOption(
      new Option(
        '--routes-only',
        'remove these routes, and nothing else: also while an agent without --routes runs',
      ).conflicts(['routes', 'cni', 'mode', 'leaveKubeProxy', 'kubeconfig']),
    )
    .option('--cni-bin-dir <path>', 'as given to the agent', NODE_PATHS.cniBinDir)
    .option('--cni-conf-dir <path>', 'as given to the agent', NODE_PATHS.cniConfDir)
    .option('--cni-data-dir <path>', 'as given to the agent', NODE_PATHS.cniDataDir)
    .option('--cni-socket <path>', 'as given to the agent', NODE_PATHS.cniSocket)
    .option('--cni-spool-dir <path>', 'as given to the agent', NODE_PATHS.cniSpoolDir)
    .option('--ipvs-exclude-cidrs <list>', 'as given to the agent: virtual servers with these addresses are left alone')
    .option('--config <path>', 'configuration file of the agent; read for ipvs.excludeCIDRs alone')
    .option(
      '--kubeconfig <path>',
      'also bring annotation nodeplane.io/migration of the Node up to date, if it has it: "gone-back" with --leave-kube-proxy, otherwise removed; not with --mode',
    )
    .option('--hostname-override <name>', 'as given to the agent: the name of the Node')
    .action(async (flags: Flags) => {
      const excludeCidrs = excludedCidrs(flags);
      const node = configOfNode(flags);
      const print = (lines: readonly string[]) => writeOut(lines.map((line) => `${line}\n`).join(''));
      const removals = new Removals({ dryRun: flags.dryRun ?? false });
      // What is not done is not told as done.
      const tell = flags.dryRun ? () => {} : print;
      await refuseBesideAgent(flags);
      // First what may be refused, with nothing done by then but what does no harm.
      if (flags.leaveKubeProxy) tell(await leaveToKubeProxy(removals));
      if (flags.cni) tell(await uninstallCni({ ...uninstallOptions(flags), removals }));
      if (flags.routes || flags.routesOnly) tell(await cleanupRoutes(removals));
      if (flags.routesOnly) {
        if (flags.dryRun) print(dryRunLines(removals));
        return;
      }
      if (!flags.leaveKubeProxy) tell(await cleanup({ excludeCidrs, mode: flags.mode, removals }));
      if (flags.dryRun) print(dryRunLines(removals));
      // Last, because it says that the rest is done.
      else if (node && !flags.mode) print([await noteLeft(node, flags.leaveKubeProxy ?? false)]);
    });
}

/**
 * Services, or pods of other nodes, would be cut off until the agent looks. What another mode left, and old routes, it does not write
 * again; nor is an agent in the way that does not say what it writes, such as an older one.
 */
async function refuseBesideAgent({ dryRun, force, mode, routes, routesOnly, agentLockDir }: Flags): Promise<void> {
  const agent = dryRun || force ? undefined : agentAtWork(agentLockDir);
  if (agent === undefined) return;
  let what = 'rules';
  if (mode || routesOnly) {
    const writes = await agentWrites(agentLockDir);
    const takesRules = mode !== undefined && writes?.mode === mode;
    const takesRoutes = (routes || routesOnly) && writes?.routes;
    if (!takesRules && !takesRoutes) return;
    if (!takesRules) what = 'routes';
  }
  const message = `An agent works on this node and would write its ${what} again: ${agent}. End it first, or give --force`;
  throw new NodeplaneError('ERR_CLEANUP', message);
}

/** What a dry run prints: one line a thing. */
function dryRunLines(removals: Removals): string[] {
  const lines = removals.all().map(({ object, why, stays }) => `${stays ? 'empty' : 'remove'} ${object} (${why})`);
  return lines.length > 0 ? lines.map(plainText) : ['There is nothing to remove'];
}

function uninstallOptions(flags: Flags): UninstallOptions {
  return {
    binDir: flags.cniBinDir,
    confDir: flags.cniConfDir,
    dataDir: flags.cniDataDir,
    socket: flags.cniSocket,
    spoolDir: flags.cniSpoolDir,
    force: flags.force ?? false,
  };
}
