import { hostname } from 'node:os';
import type { Command } from 'commander';
import { type AgentFlags, parseAgentConfig, runAgent } from '../agent/index.ts';
import { VERSION } from './version.ts';

/** `nodeplane agent`: runs until SIGTERM or SIGINT; the rules stay in the kernel. */
export function addAgentCommand(program: Command): void {
  program
    .command('agent')
    .description('run the node agent: makes Services work, until it is told to stop; its rules stay in place then')
    .option(
      '--manifests <dir>',
      'directory of Kubernetes manifests (YAML or JSON) to read and follow, instead of an API server',
    )
    .option('--node-name <name>', "name of this machine's Node object (default: the host name)")
    .option('--proxy-mode <mode>', 'how Services are made to work: iptables (default: iptables)')
    .option(
      '--cluster-cidr <cidrs>',
      'pod addresses of the whole cluster, one a family (default: podCIDRs of the Node)',
    )
    .option(
      '--nodeport-addresses <cidrs>',
      'local addresses that answer on NodePorts: CIDRs, or primary (default: all)',
    )
    .option('--masquerade-all', 'masquerade everything that goes to a ClusterIP')
    .option('--iptables-masquerade-bit <bit>', 'bit of the firewall mark that asks for masquerading (default: 14)')
    .option('--iptables-sync-period <duration>', 'longest wait before a failed sync is tried again (default: 30s)')
    .option('--iptables-min-sync-period <duration>', 'shortest time between two syncs (default: 1s)')
    .option('--iptables-variant <variant>', 'auto, legacy or nft (default: auto, the one in use on this machine)')
    .option('--healthz-bind-address <address>', 'IP:port of /healthz and /livez (default: 0.0.0.0:10256)')
    .option('--metrics-bind-address <address>', 'IP:port of /metrics (default: 127.0.0.1:10249)')
    .option('--log-level <level>', 'debug, info, warn or error (default: info)')
    .action((flags: AgentFlags) => runAgent(parseAgentConfig(flags, hostname()), VERSION));
}
