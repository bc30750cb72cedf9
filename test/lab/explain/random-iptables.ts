import fc from 'fast-check';
import { addressBits } from '../../../src/core/index.ts';
import { type OracleNetwork, textOf } from './network.ts';
import { PORTS } from './oracle-world.ts';

/** Chains one may jump to from a built-in chain, and from those before them. */
const REGULAR = ['ONE', 'TWO', 'THREE'];
const BUILT_IN = {
  raw: ['PREROUTING', 'OUTPUT'],
  mangle: ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'],
  nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'],
  filter: ['INPUT', 'FORWARD', 'OUTPUT'],
} as const;
type Table = keyof typeof BUILT_IN;

const no = fc.constantFrom('', '', '! ');
const port = fc.constantFrom(...PORTS);
const bit = fc.integer({ min: 0, max: 15 }).map((number) => `0x${(1 << number).toString(16)}`);

/** A match of a rule: of all kinds that are evaluated. */
function match({ family, sources, destinations, prefixes }: OracleNetwork, protocol: string): fc.Arbitrary<string> {
  const address = fc.constantFrom(...sources, ...destinations).map(textOf);
  const length = fc.constantFrom(...prefixes, addressBits(family));
  const ports = fc.tuple(port, port).map(([a, b]) => `${Math.min(a, b)}:${Math.max(a, b) + 1}`);
  return fc.oneof(
    fc
      .tuple(no, fc.constantFrom('-s', '-d'), address, length)
      .map(([no, option, of, bits]) => `${no}${option} ${of}/${bits}`),
    fc.tuple(no, fc.oneof(port, ports)).map(([no, range]) => `-p ${protocol} -m ${protocol} ${no}--dport ${range}`),
    fc.tuple(no, ports, port).map(([no, range, one]) => `-p ${protocol} -m multiport ${no}--dports ${range},${one}`),
    fc.tuple(no, bit).map(([no, bits]) => `-m mark ${no}--mark ${bits}/${bits}`),
    fc.tuple(no, bit).map(([no, bits]) => `-m connmark ${no}--mark ${bits}/${bits}`),
    fc
      .tuple(no, fc.constantFrom('NEW', 'INVALID,UNTRACKED', 'DNAT', 'SNAT', 'NEW,ESTABLISHED'))
      .map(([no, states]) => `-m conntrack ${no}--ctstate ${states}`),
    fc.tuple(no, address).map(([no, of]) => `-m conntrack ${no}--ctorigdst ${of}`),
    fc.tuple(no, fc.constantFrom('--src-type', '--dst-type')).map(([no, option]) => `-m addrtype ${no}${option} LOCAL`),
    fc.tuple(no, fc.constantFrom('NEW', 'UNTRACKED')).map(([no, state]) => `-m state ${no}--state ${state}`),
    fc.constant('-m comment --comment "-j DROP"'),
    fc.constantFrom('tcp', 'udp', 'icmp', '! -p tcp').map((name) => (name.startsWith('!') ? name : `-p ${name}`)),
    fc.constantFrom('-m set --match-set one src', '-m set ! --match-set two dst,dst'),
    fc.constantFrom('0.5', '0.25').map((probability) => `-m statistic --mode random --probability ${probability}`),
    fc.constant('-m physdev ! --physdev-is-in'),
  );
}

/** Nobody can tell: rare, so that most walks have an end. */
const unknowable = ({ family }: OracleNetwork) =>
  fc.constantFrom(
    '-m limit --limit 1/sec --limit-burst 2',
    family === 'IPv4' ? '-m ttl --ttl-gt 63' : '-m hl --hl-gt 63',
  );

function target(table: Table, chain: string, chains: readonly string[], network: OracleNetwork): fc.Arbitrary<string> {
  const { family, destinations } = network;
  const targets: fc.WeightedArbitrary<string>[] = [
    { weight: 2, arbitrary: fc.constant('-j ACCEPT') },
    { weight: 2, arbitrary: fc.constant('-j RETURN') },
    { weight: 8, arbitrary: bit.map((bits) => `-j MARK --set-xmark ${bits}/0x0`) },
    { weight: 2, arbitrary: bit.map((bits) => `-j CONNMARK --set-xmark ${bits}/${bits}`) },
    { weight: 1, arbitrary: fc.constant('-j CONNMARK --save-mark --nfmask 0xff --ctmask 0xff') },
    { weight: 1, arbitrary: fc.constant('-j CONNMARK --restore-mark --nfmask 0xff0 --ctmask 0xff0') },
  ];
  if (table !== 'nat') targets.push({ weight: 1, arbitrary: fc.constant('-j DROP') });
  if (chains.length > 0) {
    targets.push(
      { weight: 5, arbitrary: fc.constantFrom(...chains).map((name) => `-j ${name}`) },
      { weight: 2, arbitrary: fc.constantFrom(...chains).map((name) => `-g ${name}`) },
    );
  }
  if (table === 'raw') targets.push({ weight: 1, arbitrary: fc.constant('-j CT --notrack') });
  if (table === 'filter') targets.push({ weight: 1, arbitrary: fc.constant('-j REJECT') });
  // What the node sends to itself would cross it twice.
  const to = chain === 'OUTPUT' ? destinations.slice(0, -1) : destinations;
  if (table === 'nat' && (chain === 'PREROUTING' || chain === 'OUTPUT')) {
    const address = fc.constantFrom(...to).map(textOf);
    const written = (of: string, port: number) => (family === 'IPv4' ? `${of}:${port}` : `[${of}]:${port}`);
    targets.push(
      {
        weight: 6,
        arbitrary: fc.tuple(address, port).map(([of, port]) => `-j DNAT --to-destination ${written(of, port)}`),
      },
      { weight: 2, arbitrary: address.map((of) => `-j DNAT --to-destination ${of}`) },
    );
    if (chain === 'PREROUTING') targets.push({ weight: 1, arbitrary: fc.constant('-j REDIRECT --to-ports 8080') });
  }
  if (table === 'nat' && chain === 'POSTROUTING') targets.push({ weight: 3, arbitrary: fc.constant('-j MASQUERADE') });
  return fc.oneof(...targets);
}

/** Random rules in all tables, as input for iptables-restore. */
export function randomTables(network: OracleNetwork, protocol: 'tcp' | 'udp'): fc.Arbitrary<string> {
  const matches = fc.array(
    fc.oneof({ weight: 60, arbitrary: match(network, protocol) }, { weight: 1, arbitrary: unknowable(network) }),
    { maxLength: 2 },
  );
  const rules = (table: Table, chain: string, chains: readonly string[]) =>
    fc.array(
      fc
        .tuple(matches, target(table, chain, chains, network))
        .map(([matches, does]) => ruleOf(chain, matches, does, protocol)),
      { minLength: 1, maxLength: 4 },
    );
  const tables = (Object.keys(BUILT_IN) as Table[]).map((table) => {
    const policy = table === 'filter' ? fc.constantFrom('ACCEPT', 'ACCEPT', 'DROP') : fc.constant('ACCEPT');
    const chains = BUILT_IN[table].map((chain) =>
      fc.tuple(policy, rules(table, chain, REGULAR)).map(([policy, rules]) => [`:${chain} ${policy}`, rules] as const),
    );
    const regular = REGULAR.map((chain, index) =>
      rules(table, chain, REGULAR.slice(index + 1)).map((rules) => [`:${chain} -`, rules] as const),
    );
    return fc
      .tuple(...chains, ...regular)
      .map((all) => [`*${table}`, ...all.map(([head]) => head), ...all.flatMap(([, rules]) => rules), 'COMMIT', '']);
  });
  return fc.tuple(...tables).map((all) => all.flat().join('\n'));
}

/** A rule has one protocol and each match once; what would stand there twice is left out. Who translates ports must have one. */
function ruleOf(chain: string, given: readonly string[], does: string, protocol: string): string {
  const translatesPort = /--to-ports|--to-destination (\[.*\]|[\d.]+):\d+$/.test(does);
  const matches = translatesPort ? [`-p ${protocol}`, ...given.filter((match) => !match.includes('-p '))] : given;
  const kinds = matches.map((match) => match.match(/-[sdp] |-m \S+/)?.[0]);
  const once = matches.filter((_, index) => kinds.indexOf(kinds[index]) === index);
  const [first, ...others] = once;
  const rest = first?.includes('-p ') ? others.filter((match) => !match.includes('-p ')) : others;
  return [`-A ${chain}`, first, ...rest, does].filter(Boolean).join(' ');
}
