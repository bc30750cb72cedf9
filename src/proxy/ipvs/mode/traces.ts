import { attempt, type IpFamily } from '../../../core/index.ts';
import { closing, withNetlink } from '../../../netlink/index.ts';
import { getLink } from '../../../netlink/route/index.ts';
import { NETLINK_ROUTE } from '../../../netlink/uapi/index.ts';
import type { Trace, TraceOptions } from '../../index.ts';
import { bothVariants, isUsable } from '../../rules/index.ts';
import { cleanupIpvs, type IpvsCleanupOptions, placeOf } from '../cleanup.ts';
import { IpvsDataplane } from '../dataplane.ts';
import type { IpvsKernel } from '../kernel/kernel.ts';
import { DEVICE, openIpvsKernel } from '../kernel/netlink-kernel.ts';
import { isIpvsMode, removeRules } from '../kernel/rules-state.ts';

/** Rules of either variant of iptables, and what is not rules: they refer to it, so it goes last. */
export function ipvsTraces(family: IpFamily, { exec, excludeCidrs = [] }: TraceOptions): Trace[] {
  const usableTools = async () => {
    const tools = bothVariants(family, exec);
    const usable = await Promise.all(tools.map(isUsable));
    return tools.filter((_, index) => usable[index]);
  };
  const removeAllRules = async (removals?: IpvsCleanupOptions['removals']) => {
    const tools = await usableTools();
    for (const tool of tools) await cleanupIpvs({ tool, kernel: undefined, removals });
    return tools[0]!;
  };
  const trace: Trace = {
    name: `IPVS ${family}`,
    isUsable: async () => (await usableTools()).length > 0,
    isInUse: hasDevice,
    async clean(note) {
      const removals = note && { family, note };
      const tool = await removeAllRules(removals);
      const kernel = tryOpenIpvs(family);
      if (kernel) await closing(kernel, () => cleanupIpvs({ tool, kernel, excludeCidrs, removals }));
    },
    // A kube-proxy in mode ipvs has nothing in table mangle, and finds its own names elsewhere. In the other modes it does not know
    // IPVS, which would go on answering at addresses of Services that are gone.
    async cleanOwn(removals) {
      const tools = await usableTools();
      const inUse = await Promise.all(tools.map(async (tool) => isIpvsMode(await tool.saveAll())));
      if (!inUse.includes(true)) return trace.clean(removals);
      for (const tool of tools) {
        const noted = removals && { place: placeOf(tool, family), removals };
        await removeRules(tool, { tables: ['mangle'], noted });
      }
    },
    async retire(signal) {
      const { variant } = await removeAllRules();
      const kernel = tryOpenIpvs(family);
      if (!kernel) return;
      const dataplane = new IpvsDataplane({ family, variant, exec, kernel, excludeCidrs });
      try {
        await dataplane.retire(signal);
      } finally {
        await dataplane.close();
      }
    },
  };
  return [trace];
}

/** Without the device no packet reaches a virtual server, and reading all rules costs time and memory. */
function hasDevice(): boolean {
  return withNetlink(NETLINK_ROUTE, (route) => getLink(route, { name: DEVICE }) !== undefined);
}

/** Undefined when the kernel has no IPVS, or nobody has loaded it: then there is nothing of it. */
function tryOpenIpvs(family: IpFamily): IpvsKernel | undefined {
  return attempt(() => openIpvsKernel(family));
}
