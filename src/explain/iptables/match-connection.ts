import type { Connection, KnownBytes, Packet } from '../packet/index.ts';
import { IPS } from '../walk/index.ts';
import { isProtocol, type Match, type OptionCheck } from './match.ts';
import { all, hasMark, inNetwork, inPortRange, negate, type Truth } from './values.ts';

const STATES = { NEW: 'new', ESTABLISHED: 'established', RELATED: 'related' } as const;

/** IPS_*, those of a flow that has no answer yet; `NONE` is no bit at all. */
const STATUS_BITS: Readonly<Record<string, number>> = { NONE: 0, EXPECTED: 1, SEEN_REPLY: 2, ASSURED: 4, CONFIRMED: 8 };

/** conntrack_mt, net/netfilter/xt_conntrack.c. */
function inState(packet: Packet, wanted: string): boolean {
  const { connection } = packet;
  if (connection === undefined) return wanted === 'INVALID';
  if (connection === 'untracked') return wanted === 'UNTRACKED';
  if (wanted === 'SNAT') return (connection.status & IPS.srcNat) !== 0;
  if (wanted === 'DNAT') return (connection.status & IPS.dstNat) !== 0;
  return STATES[wanted as keyof typeof STATES] === connection.state;
}

const inOneOf: OptionCheck = ({ values }, { packet }) => values[0]!.split(',').some((state) => inState(packet, state));

type Tuple = Readonly<Record<'src' | 'dst' | 'srcport' | 'dstport', KnownBytes>>;

function original({ original: { source, destination, sourcePort, destinationPort } }: Connection): Tuple {
  return { src: source, dst: destination, srcport: sourcePort, dstport: destinationPort };
}

/** The answers a flow expects: of a new one from where its packets go now, to where they come from now. */
function reply({ state, original, translated }: Connection, { ends }: Packet): Tuple {
  const { source, destination, sourcePort, destinationPort } = state === 'new' ? ends : { ...original, ...translated };
  return { src: destination, dst: source, srcport: destinationPort, dstport: sourcePort };
}

/** An option that needs a tracked flow. */
const ofFlow =
  (check: (connection: Connection, value: string, packet: Packet) => Truth): OptionCheck =>
  ({ values }, { packet }) => {
    const { connection } = packet;
    return connection === undefined || connection === 'untracked' ? undefined : check(connection, values[0]!, packet);
  };

const address = (tuple: typeof original | typeof reply, field: 'src' | 'dst') =>
  ofFlow((connection, network, packet) => inNetwork(tuple(connection, packet)[field], network));
const port = (tuple: typeof original | typeof reply, field: 'srcport' | 'dstport') =>
  ofFlow((connection, range, packet) => inPortRange(tuple(connection, packet)[field], range));

const CONNTRACK: Readonly<Record<string, OptionCheck>> = {
  '--ctstate': inOneOf,
  '--ctproto': ofFlow((_, protocol, packet) => isProtocol(protocol, packet.protocol)),
  '--ctorigsrc': address(original, 'src'),
  '--ctorigdst': address(original, 'dst'),
  '--ctreplsrc': address(reply, 'src'),
  '--ctrepldst': address(reply, 'dst'),
  '--ctorigsrcport': port(original, 'srcport'),
  '--ctorigdstport': port(original, 'dstport'),
  '--ctreplsrcport': port(reply, 'srcport'),
  '--ctrepldstport': port(reply, 'dstport'),
  '--ctdir': ofFlow(({ direction }, wanted) => direction.toUpperCase() === wanted),
  '--ctstatus': ofFlow(({ state, status }, wanted) => {
    const bits = wanted.split(',').map((name) => STATUS_BITS[name]);
    if (state !== 'new') return undefined;
    // Of a flow's first packet none of these bits is set: it is confirmed after the last hook.
    return bits.includes(undefined) ? undefined : bits.some((bit) => ((bit ?? 0) & status) !== 0);
  }),
};

/** Matches that look at connection tracking. */
export const CONNECTION_MATCHES: Readonly<Record<string, Match>> = {
  conntrack: ({ options, ...asked }) => {
    const { connection } = asked.packet;
    const check = (only: (name: string) => boolean) =>
      all(
        options
          .filter(({ name }) => only(name))
          .map((option) => {
            const checked = Object.hasOwn(CONNTRACK, option.name) ? CONNTRACK[option.name] : undefined;
            return checked && negate(checked(option, { ...asked, options }), option.inverted);
          }),
      );
    if (connection !== undefined && connection !== 'untracked') return check(() => true);
    // Without a flow the state alone decides, and everything else, `!` or not, is false where there is none.
    return options.some(({ name }) => name === '--ctstate') ? check((name) => name === '--ctstate') : false;
  },
  state: { '--state': inOneOf },
  connmark: ({ options, packet }) => {
    const { connection } = packet;
    // connmark_mt, net/netfilter/xt_connmark.c: without a flow it is false, turned round or not.
    if (connection === undefined || connection === 'untracked') return false;
    return all(
      options.map(({ name, values, inverted }) =>
        name === '--mark' ? negate(hasMark(connection.mark, values[0]), inverted) : undefined,
      ),
    );
  },
};
