import { readFileSync } from 'node:fs';
import type { IpFamily } from '../../src/core/index.ts';
import { iptablesTool, type SavedTable } from '../../src/proxy/rules/index.ts';
import type { Exec } from '../../src/sys/index.ts';
import { execIn } from './iptables/fixtures.ts';
import type { TestNamespace } from './namespace.ts';

// A kube-proxy 1.36.2 that starts on a node, as far as the kernel sees it: its own rules (test/golden/kube-proxy-1.36.2), written
// and cleaned up in the order and by the names it uses.

/** In which of its modes it starts; iptables with the variant its image would find. */
export type KubeProxyKind = 'iptables-legacy' | 'iptables-nft' | 'nftables';

const GOLDEN = new URL('../golden/kube-proxy-1.36.2/', import.meta.url);
const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];
const VARIANTS = ['legacy', 'nft'] as const;

/** The objects its rules were made of, as a manifest. */
export const KUBE_PROXY_OBJECTS = readFileSync(new URL('objects.yaml', GOLDEN), 'utf8');

/** Every Service chain that is not in use goes with the next sync (pkg/proxy/iptables, isServiceChainName). */
const SERVICE_CHAIN = /^KUBE-(?:SVC|SVL|SEP|FW|EXT)-/;
/** What it knows of itself besides these, when it starts in mode nftables: KUBE-FIREWALL is the kubelet's too, and stays. */
const OWN_CHAINS: Readonly<Record<string, readonly string[]>> = {
  nat: ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ', 'KUBE-PROXY-CANARY'],
  filter: [
    'KUBE-SERVICES',
    'KUBE-EXTERNAL-SERVICES',
    'KUBE-FORWARD',
    'KUBE-NODEPORTS',
    'KUBE-PROXY-FIREWALL',
    'KUBE-PROXY-CANARY',
  ],
  mangle: ['KUBE-PROXY-CANARY'],
};

export interface KubeProxyNode {
  readonly namespace: TestNamespace;
  /** Addresses of the golden rules, and what they are on this node. */
  readonly addresses: Readonly<Record<string, string>>;
}

/** Starts it: what it wrote in another mode goes, and its rules stand when this resolves. */
export async function startKubeProxy(node: KubeProxyNode, kind: KubeProxyKind): Promise<void> {
  const exec = execIn(node.namespace);
  if (kind === 'nftables') {
    for (const family of FAMILIES) for (const variant of VARIANTS) await cleanUpIptables(exec, family, variant);
    const tables = ['ip', 'ip6'].map((family) => `add table ${family} kube-proxy\ndelete table ${family} kube-proxy\n`);
    await run(exec, 'nft', ['-f', '-'], tables.join('') + golden('ruleset.nft', node));
    return;
  }
  // Not found is fine.
  for (const family of ['ip', 'ip6']) await exec('nft', ['delete', 'table', family, 'kube-proxy']);
  const variant = kind === 'iptables-legacy' ? 'legacy' : 'nft';
  for (const family of FAMILIES) await writeIptables(exec, family, variant, node);
}

/** A text of the golden ones with the node's own addresses. */
export function withAddresses(text: string, { addresses }: Pick<KubeProxyNode, 'addresses'>): string {
  return text.replace(/\b\d+\.\d+\.\d+\.\d+\b/g, (address) => addresses[address] ?? address);
}

function golden(file: string, node: KubeProxyNode): string {
  return withAddresses(readFileSync(new URL(file, GOLDEN), 'utf8'), node);
}

interface GoldenTable {
  readonly chains: readonly string[];
  readonly rules: readonly string[];
  /** Rules of built-in chains, in their order. */
  readonly jumps: readonly (readonly [chain: string, rule: string])[];
}

/** Chains and jumps are made one by one, each jump in front; then all rules of a family in one restore. */
async function writeIptables(exec: Exec, family: IpFamily, variant: 'legacy' | 'nft', node: KubeProxyNode) {
  const text = golden(family === 'IPv4' ? 'iptables.save' : 'ip6tables.save', node);
  const program = `${family === 'IPv4' ? 'iptables' : 'ip6tables'}-${variant}`;
  const restores: string[] = [];
  const saved = await iptablesTool(family, variant, exec).saveAll();
  for (const [table, { chains, rules, jumps }] of readSave(text)) {
    for (const [chain, rule] of jumps.toReversed()) {
      const words = wordsOf(rule);
      await exec(program, ['-w', '-t', table, '-N', words.at(-1)!]);
      const there = await exec(program, ['-w', '-t', table, '-C', chain, ...words]);
      if (there.status !== 0) await run(exec, program, ['-w', '-t', table, '-I', chain, ...words]);
    }
    const stale = staleChains(table, saved.get(table), chains);
    restores.push(
      [
        `*${table}`,
        ...[...chains, ...stale].map((chain) => `:${chain} - [0:0]`),
        ...rules,
        ...stale.map((chain) => `-X ${chain}`),
        'COMMIT\n',
      ].join('\n'),
    );
  }
  await run(exec, `${program}-restore`, ['-w', '--noflush'], restores.join(''));
}

function staleChains(table: string, saved: SavedTable | undefined, wanted: readonly string[]): string[] {
  if (table !== 'nat') return [];
  return [...(saved?.keys() ?? [])].filter((chain) => SERVICE_CHAIN.test(chain) && !wanted.includes(chain));
}

/** What it does when it starts in mode nftables. */
async function cleanUpIptables(exec: Exec, family: IpFamily, variant: 'legacy' | 'nft'): Promise<void> {
  const program = `${family === 'IPv4' ? 'iptables' : 'ip6tables'}-${variant}`;
  const tool = iptablesTool(family, variant, exec);
  const text = readFileSync(new URL(family === 'IPv4' ? 'iptables.save' : 'ip6tables.save', GOLDEN), 'utf8');
  for (const [table, { jumps }] of readSave(text)) {
    for (const [chain, rule] of jumps) {
      if (!rule.endsWith('KUBE-FIREWALL')) await exec(program, ['-w', '-t', table, '-D', chain, ...wordsOf(rule)]);
    }
  }
  const tables = await tool.saveAll();
  for (const [table, own] of Object.entries(OWN_CHAINS)) {
    const there = [...(tables.get(table)?.keys() ?? [])];
    const gone = there.filter((name) => own.includes(name) || (table === 'nat' && SERVICE_CHAIN.test(name)));
    if (gone.length === 0) continue;
    const lines = [`*${table}`, ...gone.map((name) => `:${name} - [0:0]`), ...gone.map((name) => `-X ${name}`)];
    // A failure is counted and forgotten.
    await exec(`${program}-restore`, ['-w', '--noflush'], { input: `${lines.join('\n')}\nCOMMIT\n` });
  }
}

function readSave(text: string): ReadonlyMap<string, GoldenTable> {
  const tables = new Map<string, { chains: string[]; rules: string[]; jumps: [string, string][] }>();
  let table = { chains: [] as string[], rules: [] as string[], jumps: [] as [string, string][] };
  for (const line of text.split('\n')) {
    const [, name] = /^\*(\w+)/.exec(line) ?? [];
    if (name !== undefined) {
      table = { chains: [], rules: [], jumps: [] };
      tables.set(name, table);
    }
    const [, chain] = /^:(KUBE-\S+) /.exec(line) ?? [];
    if (chain !== undefined) table.chains.push(chain);
    const [, from, rule] = /^-A (\S+) (.*)$/.exec(line) ?? [];
    if (from === undefined || rule === undefined) continue;
    // A kernel without nfacct gets the rule without it, as kube-proxy looks for it at its start.
    const withoutCounter = line.replace(/-m nfacct --nfacct-name +\S+ /, '');
    if (from.startsWith('KUBE-')) table.rules.push(withoutCounter);
    else table.jumps.push([from, rule]);
  }
  return tables;
}

/** The words of a rule as a shell would pass them. */
function wordsOf(rule: string): string[] {
  return [...rule.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);
}

async function run(exec: Exec, program: string, args: readonly string[], input?: string): Promise<void> {
  const { status, stderr } = await exec(program, args, input === undefined ? {} : { input });
  if (status !== 0) throw new Error(`kube-proxy's "${program} ${args.join(' ')}" failed: ${stderr}`);
}
