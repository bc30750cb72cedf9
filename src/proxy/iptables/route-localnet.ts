import { writeSysctl } from '../../sys/index.ts';

/**
 * Lets packets from and to 127.0.0.0/8 pass between interfaces of the calling thread's network namespace, as NodePorts on
 * loopback addresses need (net.ipv4.conf.all.route_localnet). To be called once the rules of a plan with
 * `loopbackNodePorts` are in the kernel: they keep neighbours from using it.
 *
 * @returns whether it was off before
 * @throws KernelError ERR_SYSCALL, EROFS where /proc/sys cannot be written
 */
export function enableRouteLocalnet(): boolean {
  return writeSysctl('net/ipv4/conf/all/route_localnet', 1);
}
