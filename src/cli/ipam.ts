import type { Command } from 'commander';
import { checkAddressesOf, type IpamCheck, type IpamReport, showAddresses } from '../agent/index.ts';
import type { KubeProxyConfig } from '../config/index.ts';
import { NodeplaneError, parseCidr } from '../core/index.ts';
import { readAgentFlags } from './agent-flags.ts';
import { asksForHelp } from './asks-for-help.ts';
import { writeOut } from './standard-output.ts';

/** Something is found: neither success nor a failure of the command, whose status is 1. */
const FOUND = 2;

/** `nodeplane ipam`: the pods' addresses, as the agent with the same flags on this node sees them. */
export function addIpamCommand(program: Command): void {
  program
    .command('ipam')
    .description(
      'show pools, the blocks of this node and its addresses used and free; "ipam check" looks for lost ones (exit status 2: found some)',
    )
    // What follows are the flags of the agent, and it reads them.
    .allowUnknownOption()
    .passThroughOptions()
    .argument('[words...]', 'check, --json, and the flags of the agent on this node: see "nodeplane agent --help"')
    .action((_words: string[], _options: object, command: Command) =>
      asksForHelp(command.args) ? command.help() : runIpam(command.args),
    );
}

/**
 * Shows or checks the addresses of this node, and sets the exit status.
 *
 * @param argv `check` or nothing, `--json`, and the agent's flags
 * @throws ERR_CONFIG for flags that cannot be used; what showing and checking fail with
 */
export async function runIpam(argv: readonly string[]): Promise<void> {
  const isJson = argv.includes('--json');
  const words = argv.filter((word) => word !== '--json');
  const isCheck = words[0] === 'check';
  const config = configOf(isCheck ? words.slice(1) : words);
  if (isCheck) {
    const check = await checkAddressesOf(config);
    writeOut(isJson ? jsonText(check) : checkText(check));
    if (check.findings.length > 0) process.exitCode = FOUND;
    else if (check.notLookedAt.length > 0) process.exitCode = 1;
  } else {
    const report = await showAddresses(config);
    writeOut(isJson ? jsonText(report) : reportText(report));
  }
}

function configOf(argv: readonly string[]): KubeProxyConfig {
  const flags = readAgentFlags(argv);
  if (typeof flags !== 'string') return flags.config;
  throw new NodeplaneError('ERR_CONFIG', `Cannot use these flags: ${flags}`);
}

/** What `nodeplane ipam` prints. */
export function reportText({ node, pools, ranges }: IpamReport): string {
  const ofPools = pools.map((pool) => [pool.cidr, `/${pool.blockSize}`, pool.blocks, pool.free, pool.nodes]);
  const ofRanges = ranges.map(({ cidr, state, used, free }) => [cidr, state, used, freeText(cidr, free)]);
  return [
    ...(pools.length > 0 ? [tableText(['POOL', 'BLOCK', 'BLOCKS', 'FREE', 'NODES'], ofPools), ''] : []),
    ranges.length > 0 ? `Node ${node}` : `Node ${node} has no range of pod addresses`,
    ...(ranges.length > 0 ? [tableText(['RANGE', 'STATE', 'USED', 'FREE'], ofRanges)] : []),
    '',
  ].join('\n');
}

/** Beyond what numbers hold exactly, the size of the range says it. */
function freeText(cidr: string, free: number): number | string {
  return free < Number.MAX_SAFE_INTEGER ? free : `2^${128 - parseCidr(cidr).prefixLength}`;
}

/** What `nodeplane ipam check` prints. */
export function checkText({ findings, notLookedAt }: IpamCheck): string {
  const lines = [
    ...findings.map(({ what, message, remedy }) => `${what} ${message}\n  to mend it: ${remedy}`),
    ...notLookedAt.map((text) => `Not looked at: ${text}`),
  ];
  return `${lines.join('\n') || 'All addresses are in order'}\n`;
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** Columns as wide as what is in them, numbers to the right. No line break at the end. */
function tableText(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => String(row[column]).length)));
  const cell = (value: string | number, column: number) =>
    typeof value === 'number' ? String(value).padStart(widths[column]!) : value.padEnd(widths[column]!);
  return [head, ...rows].map((row) => row.map(cell).join('  ').trimEnd()).join('\n');
}
