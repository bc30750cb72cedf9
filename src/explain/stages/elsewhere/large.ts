import { formatIp } from '../../../core/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import type { Report } from '../report.ts';
import { isAnswer, type Seat, type Trial, type Tried, tryAll } from './seat.ts';
import { ANY_PORT } from './silence.ts';

/** What a program hears of a datagram that did not fit, once a router has told the kernel. */
const TOLD_SO = 'EMSGSIZE';
/** IP and UDP headers. */
const HEADERS = { IPv4: 28, IPv6: 48 } as const;

/** Large packets as the pod may send them: whether they arrive where small ones do. Of answers nobody here can tell. */
export function lookAtLarge({ client }: Asked, reached: readonly Tried[], node: NodeView, report: Report): void {
  const own = reached.filter(({ seat }) => seat.netns !== undefined);
  if (own.length < reached.length || client.kind !== 'pod') report.notChecked('how large packets fare');
  if (own.length === 0 || client.kind !== 'pod') return;
  const { mtu } = client.pod.inside;
  const small = tryAll(own.map(({ goal, seat }) => trialOf(goal, seat, 0)));
  const heard = own.filter((_, index) => isAnswer(small[index]!));
  if (heard.length < own.length) report.notChecked('how large packets fare where the endpoint’s port 9 is silent');
  const whole = tryAll(heard.map(({ goal, seat }) => trialOf(goal, seat, mtu - HEADERS[goal.ip.family])));
  // Whoever told the kernel what fits may be wrong about what comes behind.
  const cut = heard
    .filter((_, index) => whole[index] === TOLD_SO)
    .flatMap((one) => {
      const fits = node.wayOut(one.goal.ip)?.mtu ?? mtu;
      return fits < mtu ? [{ ...one, fits }] : [];
    });
  const again = tryAll(cut.map(({ goal, seat, fits }) => trialOf(goal, seat, fits - HEADERS[goal.ip.family])));
  heard.forEach((one, index) => {
    if (!isAnswer(whole[index]!) && whole[index] !== TOLD_SO) tell(one, mtu, node, report);
  });
  cut.forEach((one, index) => {
    if (!isAnswer(again[index]!) && again[index] !== TOLD_SO) tell(one, one.fits, node, report);
  });
}

function trialOf({ ip }: Goal, seat: Seat, bytes: number): Trial {
  return { seat, protocol: 'UDP', ip, port: ANY_PORT, bytes };
}

function tell({ goal }: Tried, bytes: number, node: NodeView, report: Report): void {
  const way = node.wayOut(goal.ip);
  const known = way && way.mtu < bytes ? `; ${way.link.name} takes ${way.mtu}` : '';
  const text = `packets of ${bytes} bytes to ${formatIp(goal.ip)} vanish, small ones arrive: somewhere on the way they do not fit, and nobody says so${known}`;
  const remedy = [`ip route get ${formatIp(goal.ip)}   # "mtu" of the CNI configuration must fit this way`];
  report.failPartly('endpoint', { code: 'mtu', text, remedy });
}
