import { formatIp, type IpAddress, shellWord } from '../../../core/index.ts';
import { type AttemptResult, type NodeView, tryAttempts, type WayOut } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { strayed } from '../peer.ts';
import type { Finding } from '../report.ts';
import { isAnswer, type Trial, type Tried, tryAll } from './seat.ts';
import { whereabouts } from './whereabouts.ts';

/** Discard; where nobody listens, the refusal is the answer that counts. */
export const ANY_PORT = 9;
const PROTOCOLS = ['TCP', 'UDP'] as const;

/** Tells why attempts were not answered, by more of them: to another port of the endpoint, and to whom packets take on the way. */
export class Silence {
  readonly #asked: Asked;
  readonly #node: NodeView;
  /** Endpoints that answer at another port. */
  readonly #heard: ReadonlySet<Goal>;
  /** By the next machine and the link. */
  readonly #listened = new Map<string, Heard>();

  constructor(asked: Asked, failed: readonly Tried[], node: NodeView) {
    this.#asked = asked;
    this.#node = node;
    const trials = failed
      .filter(({ result }) => result !== 'ECONNREFUSED')
      .flatMap(({ goal, seat }) =>
        PROTOCOLS.map((protocol): Trial & { goal: Goal } => ({ goal, seat, protocol, ip: goal.ip, port: ANY_PORT })),
      );
    const results = tryAll(trials);
    this.#heard = new Set(trials.filter((_, index) => isAnswer(results[index]!)).map(({ goal }) => goal));
  }

  /** Undefined: silence that proves nothing. */
  cause({ goal, result }: Tried): Finding | undefined {
    const way = this.#node.wayOut(goal.ip);
    const finding = this.#cause(goal, way, result);
    const isQuiet = result === 'ETIMEDOUT' && this.#asked.target.protocol === 'UDP';
    return isQuiet && finding.code === 'no-answer' ? undefined : finding;
  }

  #cause(goal: Goal, way: WayOut | undefined, result: AttemptResult): Finding {
    const node = this.#node;
    const { who, show: remedy } = whereabouts(this.#asked, goal);
    const [ip, next] = [formatIp(goal.ip), formatIp(way?.next ?? goal.ip)];
    if (result === 'ECONNREFUSED') {
      const text = `the connection was refused: nobody listens on ${goal.port} at ${ip}, or a firewall on the way refuses`;
      return { code: 'target-port', text, remedy };
    }
    if (this.#heard.has(goal)) {
      const by = way ? `${who} is reached by ${way.link.name}` : `${who} is reached`;
      const text = `${by}, and of ${ip} port ${ANY_PORT}, but not ${goal.port} (${result}): a firewall there stops it, or the process is stuck`;
      return { code: 'no-answer', text, remedy };
    }
    // The same error is that of a firewall which refuses all (admin-prohibited).
    if (result === 'EHOSTUNREACH') {
      const text = `${who} or a router says that nobody has ${ip}, or a firewall refuses all that is for it`;
      return { code: 'neighbour', text, remedy };
    }
    if (result === 'EACCES')
      return { code: 'no-answer', text: `a firewall on the way to ${goal.address} refuses it`, remedy };
    if (result !== 'ETIMEDOUT') return { code: 'no-answer', text: `the connection failed: ${result}`, remedy };
    // The neighbour's entry is of now, after a packet was sent to it.
    if (node.isNextHopDead(goal.ip)) {
      const text = `nobody answers for ${next}, where packets for ${ip} are sent: ${who} is down or cut off`;
      return { code: 'neighbour', text, remedy: [`ip neigh show ${next}`] };
    }
    const strays = way && strayed(this.#asked, goal, way, node);
    if (strays) return { ...strays.finding, text: `${strays.finding.text}, and does not answer` };
    if (!way?.next) return { code: 'no-answer', text: `${goal.address} does not answer`, remedy };
    const { outside, inside, oneWay } = this.#listen(way, way.next);
    if (oneWay && !inside) {
      const text = `${who} hears what ${way.link.name} sends and does not answer through it: its way back to ${formatIp(this.#asked.client.ip)} is missing or another`;
      return { code: 'way-back', text, remedy };
    }
    if (outside && inside === false) {
      const text = `${who} answers at ${next}, and nothing comes back through ${way.link.name} (UDP port ${way.outer?.port ?? '?'})`;
      const show = `ip -d link show dev ${shellWord(way.link.name)}   # its UDP port must pass every firewall between the nodes`;
      return { code: 'overlay-blocked', text, remedy: [show, ...remedy] };
    }
    const text =
      (inside ?? outside)
        ? `${who} is reached by ${way.link.name}, and ${goal.address} does not answer: it is dropped there, or its answer is lost`
        : `neither ${goal.address} nor ${who} (${next}) answers by ${way.link.name}`;
    return { code: 'no-answer', text, remedy };
  }

  #listen(way: WayOut, next: IpAddress): Heard {
    const key = `${way.link.index} ${formatIp(next)}`;
    const heard = this.#listened.get(key) ?? listen(way, next, this.#node);
    this.#listened.set(key, heard);
    return heard;
  }
}

/** From where an answer comes, of those on the way: a refusal is as good as a connection. */
interface Heard {
  /** From the next machine itself. */
  readonly outside: boolean;
  /** From the inner address of the tunnel's other end. Undefined: it has none. */
  readonly inside: boolean | undefined;
  /** From there, asked through the tunnel by an address of this node that is answered past it. */
  readonly oneWay: boolean;
}

function listen({ kind, gateway, outer }: WayOut, next: IpAddress, node: NodeView): Heard {
  const routed = (ip: IpAddress) => {
    const answer = node.route({ destination: ip });
    return answer.kind === 'route' ? answer.route.source : undefined;
  };
  const inner = kind === 'vxlan' ? gateway : undefined;
  const questions = [
    { ip: next, source: routed(next) },
    { ip: inner, source: inner && routed(inner) },
    { ip: inner, source: outer?.local?.family === inner?.family ? outer?.local : undefined },
  ];
  const attempts = questions.flatMap(({ ip, source }, index) =>
    ip && source ? PROTOCOLS.map((protocol) => ({ index, protocol, source, ip, port: ANY_PORT })) : [],
  );
  const results = tryAttempts(undefined, attempts);
  const isHeard = (index: number) => attempts.some((one, at) => one.index === index && isAnswer(results[at]!));
  return { outside: isHeard(0), inside: inner && isHeard(1), oneWay: isHeard(2) };
}
