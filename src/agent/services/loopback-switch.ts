import type { ProxyObserver } from '../../proxy/index.ts';
import { disableRouteLocalnet, enableRouteLocalnet, lacksLoopbackGuard } from '../../proxy/iptables/index.ts';
import type { Logger } from '../logger.ts';

/** The kernel's switch for NodePorts at 127.0.0.1; in production route_localnet. */
export interface LoopbackSwitch {
  /** True if it was off. May throw, as where /proc/sys is read-only. */
  on(): boolean;
  /** True if it was on, by us. May throw. */
  off(): boolean;
}

const ROUTE_LOCALNET: LoopbackSwitch = { on: enableRouteLocalnet, off: disableRouteLocalnet };
const SYSCTL = 'net.ipv4.conf.all.route_localnet';

/**
 * Keeps the switch and the rules that keep neighbours from 127.0.0.0/8 together. It is on once a full sync has put the
 * rules into the kernel; off at once when they are found to be missing, until the full sync that follows has succeeded;
 * and off when this node has no NodePorts there any more, in this mode or by its settings: nobody would look after the
 * rules.
 *
 * @param wanted whether the plan in force has NodePorts on loopback addresses
 */
export function loopbackSwitch(
  logger: Logger,
  wanted: () => boolean,
  { on, off }: LoopbackSwitch = ROUTE_LOCALNET,
): ProxyObserver {
  const attempt = (act: () => void, consequence: string): void => {
    try {
      act();
    } catch (error) {
      logger.warn({ err: error }, consequence);
    }
  };
  const switchOn = () => {
    if (on()) logger.info(`${SYSCTL} is on now, for NodePorts at 127.0.0.1`);
  };
  const switchOff = (why: string) => {
    if (off()) logger.info(`${SYSCTL} is off again: ${why}`);
  };
  return (event) => {
    if (event.family !== 'IPv4') return;
    if (event.kind === 'driftFound' && lacksLoopbackGuard(event.drifts)) {
      attempt(
        () => switchOff('the rules that keep neighbours from 127.0.0.0/8 are gone'),
        `${SYSCTL} stays on without the rules that keep neighbours from 127.0.0.0/8; set it to 0 until a sync succeeds`,
      );
    }
    if (event.kind !== 'syncFinished' || !event.full) return;
    if (wanted()) {
      attempt(switchOn, 'NodePorts do not answer at 127.0.0.1; --iptables-localhost-nodeports=false asks for none');
    } else {
      attempt(
        () => switchOff('there are no NodePorts at 127.0.0.1'),
        `${SYSCTL} stays on, which nothing needs any more; set it to 0`,
      );
    }
  };
}
