import { readSysctl, writeSysctl } from '../../sys/index.ts';
import type { Drift } from '../index.ts';
import { type IptablesTool, writeRestore } from '../rules/index.ts';
import { LOOPBACK_GUARD, SHARED_CHAIN } from './fixed-chains.ts';
import { missingJumps } from './kernel-state.ts';

// net.ipv4.conf.all.route_localnet lets packets from and to 127.0.0.0/8 pass between interfaces, as NodePorts on loopback
// addresses need, and with it neighbours reach what listens on loopback (CVE-2020-8558), were it not for the guarding
// rules. So it is on only while somebody looks after these: switched on after them, and off again before nobody does.
// The rules themselves are never taken away. All of this is about the calling thread's network namespace.

const SYSCTL = 'net/ipv4/conf/all/route_localnet';

/**
 * On, by us: to the kernel any number but 0 is on (IN_DEV_ORCONF in include/linux/inetdevice.h). Kept there, it lasts as
 * long as the switch, through restarts of the agent, and goes when somebody else sets it.
 */
const ON_BY_US = '2';

/**
 * Switches it on, if it is off. To be called once the guarding rules are in the kernel: those of a plan with
 * `loopbackNodePorts`, or `guardLoopback`.
 *
 * @returns whether it was off before
 * @throws KernelError ERR_SYSCALL, EROFS where /proc/sys cannot be written
 */
export function enableRouteLocalnet(): boolean {
  return readSysctl(SYSCTL) === '0' && writeSysctl(SYSCTL, ON_BY_US);
}

/**
 * Switches it off, if `enableRouteLocalnet` switched it on and nobody has set it since.
 *
 * @returns whether it did
 * @throws KernelError ERR_SYSCALL, EROFS where /proc/sys cannot be written
 */
export function disableRouteLocalnet(): boolean {
  return readSysctl(SYSCTL) === ON_BY_US && writeSysctl(SYSCTL, 0);
}

/**
 * Adds the guarding rules where they are missing, and nothing else.
 *
 * @param tool of IPv4, in the variant in use
 * @throws ERR_IPTABLES
 */
export async function guardLoopback(tool: IptablesTool): Promise<void> {
  const saved = (await tool.saveAll()).get('filter') ?? new Map();
  const insert = missingJumps(LOOPBACK_GUARD, 'filter', saved);
  if (insert.length === 0) return;
  const create = saved.has(SHARED_CHAIN) ? [] : [SHARED_CHAIN];
  await tool.restore(writeRestore([{ table: 'filter', write: new Map(), remove: [], create, insert, withdraw: [] }]));
}

/** Whether one of the guarding rules is among what was found to be missing. */
export function lacksLoopbackGuard(drifts: readonly Drift[]): boolean {
  return drifts.some(({ object }) => object.startsWith('jump ') && object.includes(SHARED_CHAIN));
}
