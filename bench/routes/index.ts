import { type Figure, report } from '../report/index.ts';
import { burden } from './burden.ts';
import { nodeEvents } from './node-events.ts';
import { runningTraffic } from './running-traffic.ts';
import { start } from './start.ts';
import { traffic } from './traffic.ts';

const PARTS: Readonly<Record<string, () => Promise<Figure[]>>> = {
  'one Node event': nodeEvents,
  'start with many Nodes': start,
  'burden of many Nodes': burden,
  'traffic between pods': traffic,
  'restart and change of mode': runningTraffic,
};

/**
 * The routes to other nodes' pods, in namespaces of their own, in mode host-gw and vxlan, IPv4 and IPv6.
 *
 * @param only what the name of a part must hold. @default every part
 */
export async function benchRoutes(only = ''): Promise<void> {
  // The routes' timers do not keep a process alive.
  const alive = setInterval(() => {}, 1000);
  try {
    for (const [name, part] of Object.entries(PARTS)) if (name.includes(only)) report(`routes, ${name}`, await part());
  } finally {
    clearInterval(alive);
  }
}
