import type { Command } from 'commander';
import { cleanup, cleanupRoutes, leaveToKubeProxy, type UninstallOptions, uninstallCni } from '../agent/index.ts';
import { NODE_PATHS } from '../core/index.ts';
import { excludedCidrs } from './excluded-cidrs.ts';

interface Flags extends CniFlags {
  readonly cni?: boolean;
  readonly routes?: boolean;
  readonly force?: boolean;
  readonly leaveKubeProxy?: boolean;
  readonly config?: string;
  readonly ipvsExcludeCidrs?: string;
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
    .option(
      '--leave-kube-proxy',
      'remove only what a kube-proxy that runs here instead does not know; refused before it has rules',
    )
    .option('--cni', 'remove the CNI plugin and its configuration too; refused while pods are attached')
    .option('--force', 'with --cni: although pods are attached; their runtime cannot remove them afterwards')
    .option('--routes', 'remove the routes to pods on other nodes too: these cannot be reached from here then')
    .option('--cni-bin-dir <path>', 'as given to the agent', NODE_PATHS.cniBinDir)
    .option('--cni-conf-dir <path>', 'as given to the agent', NODE_PATHS.cniConfDir)
    .option('--cni-data-dir <path>', 'as given to the agent', NODE_PATHS.cniDataDir)
    .option('--cni-socket <path>', 'as given to the agent', NODE_PATHS.cniSocket)
    .option('--cni-spool-dir <path>', 'as given to the agent', NODE_PATHS.cniSpoolDir)
    .option('--ipvs-exclude-cidrs <list>', 'as given to the agent: virtual servers with these addresses are left alone')
    .option('--config <path>', 'configuration file of the agent; read for ipvs.excludeCIDRs alone')
    .action(async (flags: Flags) => {
      const excludeCidrs = excludedCidrs(flags);
      const print = (lines: readonly string[]) => process.stdout.write(lines.map((line) => `${line}\n`).join(''));
      // First, because it may be refused.
      if (flags.cni) print(await uninstallCni(uninstallOptions(flags)));
      if (flags.routes) print(await cleanupRoutes());
      print(flags.leaveKubeProxy ? await leaveToKubeProxy() : await cleanup({ excludeCidrs }));
    });
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
