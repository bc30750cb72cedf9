import { errorText, isExists, isNotFound, KernelError, NodeplaneError } from '../../core/index.ts';
import { type Netlink, resolveFamily, withNetlink } from '../../netlink/index.ts';
import {
  deleteVirtualServer,
  IPVS_GENL_NAME,
  type IpvsFamily,
  newVirtualServer,
  type VirtualServerKey,
} from '../../netlink/ipvs/index.ts';
import { deleteLink, newDummy } from '../../netlink/route/index.ts';
import { NETLINK_GENERIC, NETLINK_ROUTE } from '../../netlink/uapi/index.ts';
import type { Exec } from '../../sys/index.ts';
import { BY_SOURCE, parseScheduler } from './compile/server.ts';
import { missingSetTypes } from './kernel/set-table.ts';

/** What IPVS mode is going to use. */
export interface IpvsRequirements {
  /** --ipvs-scheduler; empty: rr. */
  readonly scheduler: string;
  /** Runs modprobe. */
  readonly exec: Exec;
}

const SET_MODULES = ['ip_set_hash_ip', 'ip_set_hash_ipport', 'ip_set_hash_ipportip', 'ip_set_hash_ipportnet'];

/** Tried for a moment, to see whether there is a scheduler: no packet has this mark, and none of ours has its lower half. */
const PROBE: VirtualServerKey = { kind: 'mark', family: 'IPv4', mark: 0x6e70_ffff };
const PROBE_DEVICE = 'nodeplane-probe';

/**
 * Looks whether IPVS mode can be used here, before anything is written. What is missing the kernel loads by itself where it
 * can; modprobe is tried besides, and may be missing in a container.
 *
 * @throws ERR_IPVS with one sentence that names what is missing
 */
export async function checkIpvs({ scheduler: wanted, exec }: IpvsRequirements): Promise<void> {
  const { scheduler } = parseScheduler(wanted || 'rr');
  const modules = [
    'ip_vs',
    `ip_vs_${scheduler}`,
    `ip_vs_${BY_SOURCE}`,
    'dummy',
    'xt_set',
    'ip_set_bitmap_port',
    ...SET_MODULES,
  ];
  await loadModules(exec, modules);
  const missing = [
    ...whyNoServers(scheduler),
    ...whyNoDevice(),
    ...missingSetTypes().map(
      (type) => `the ipset type ${type} (module ip_set_${type.replace(':', '_').replaceAll(',', '')})`,
    ),
  ];
  if (missing.length === 0) return;
  const message = `Cannot use mode ipvs: this kernel lacks ${missing.join(', ')}; install or load the module, or choose another --proxy-mode`;
  throw new NodeplaneError('ERR_IPVS', message, { facts: { missing: missing.join(', ') } });
}

async function loadModules(exec: Exec, modules: readonly string[]): Promise<void> {
  try {
    await exec('modprobe', ['-qa', ...modules]);
  } catch {
    // What counts is whether the kernel has what is needed.
  }
}

function whyNoServers(scheduler: string): string[] {
  try {
    return withNetlink(NETLINK_GENERIC, (netlink) =>
      whyNoScheduler(netlink, resolveFamily(netlink, IPVS_GENL_NAME), scheduler),
    );
  } catch (error) {
    if (isNotFound(error)) return ['IPVS (module ip_vs)'];
    throw error;
  }
}

function whyNoScheduler(netlink: Netlink, ipvs: IpvsFamily, scheduler: string): string[] {
  const server = { key: PROBE, scheduler, flags: 0, persistenceSeconds: 0 };
  const [refusal] = netlink.attempt([newVirtualServer(ipvs, server)]);
  if (isNotFound(refusal)) return [`the scheduler ${scheduler} (module ip_vs_${scheduler})`];
  if (refusal && !isExists(refusal)) throw refusal;
  netlink.attempt([deleteVirtualServer(ipvs, PROBE)]);
  return [];
}

function whyNoDevice(): string[] {
  return withNetlink(NETLINK_ROUTE, (route) => {
    try {
      route.execute(newDummy(PROBE_DEVICE));
    } catch (error) {
      if (isExists(error)) return [];
      if (error instanceof KernelError) return [`the device dummy (module dummy): ${errorText(error)}`];
      throw error;
    } finally {
      route.attempt([deleteLink({ name: PROBE_DEVICE })]);
    }
    return [];
  });
}
