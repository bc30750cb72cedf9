import { setTimeout as delay } from 'node:timers/promises';
import { errorText, type IpFamily, jsonText, plainText } from '../../../core/index.ts';
import { withNetlink } from '../../../netlink/index.ts';
import { NETLINK_ROUTE } from '../../../netlink/uapi/index.ts';
import { type KernelPeers, readKernelPeers } from '../../../routes/index.ts';
import type { RoutesReport } from '../report.ts';
import { askAgent } from './ask-agent.ts';
import { routesText } from './routes-text.ts';
import { type ShownRoutes, shownRoutes } from './shown-routes.ts';

export interface ShowRoutesOptions {
  /** The metrics port of this machine's agent, `127.0.0.1:10249`. */
  readonly agent: string;
  readonly json: boolean;
}

export interface ShowRoutesResult {
  readonly stdout: string;
  /** Why the agent did not say what it knows; '' when it did. */
  readonly stderr: string;
  /** 0: nothing is wrong as far as can be told; 2: something is. */
  readonly exitCode: 0 | 2;
}

/** Something may have been on its way into the kernel, and the agent repairs within a second what others deleted. */
const SECOND_LOOK_MS = 1500;

/**
 * `nodeplane routes`: how the pods of other nodes are reached from this one. The kernel is asked for what is in force, the agent
 * for names and reasons, if one answers.
 *
 * @throws KernelError when the kernel's routes cannot be read
 */
export async function showRoutes({ agent, json }: ShowRoutesOptions): Promise<ShowRoutesResult> {
  let { routes, stderr } = await look(agent);
  if (routes.drift.length > 0) {
    await delay(SECOND_LOOK_MS);
    ({ routes, stderr } = await look(agent));
  }
  const { peers, leftOut, drift, problems } = routes;
  const isWrong =
    leftOut.length + drift.length + problems.length > 0 || peers.some(({ reachable }) => reachable === 'no');
  const stdout = json ? jsonText(routes) : routesText(routes);
  return { stdout, stderr, exitCode: isWrong ? 2 : 0 };
}

async function look(agent: string): Promise<{ readonly routes: ShownRoutes; readonly stderr: string }> {
  let report: RoutesReport | undefined;
  let stderr = '';
  try {
    report = await askAgent(agent);
  } catch (error) {
    stderr = `nodeplane: ${plainText(errorText(error))}; names, reasons and times are not known (ERR_ROUTES_AGENT)\n`;
  }
  return { routes: shownRoutes(readKernel(), report), stderr };
}

function readKernel(): Readonly<Record<IpFamily, KernelPeers>> {
  return withNetlink(NETLINK_ROUTE, (netlink) => ({
    IPv4: readKernelPeers(netlink, 'IPv4'),
    IPv6: readKernelPeers(netlink, 'IPv6'),
  }));
}
