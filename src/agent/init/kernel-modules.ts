import { attempt, errorText } from '../../core/index.ts';
import { type Exec, readSysctl } from '../../sys/index.ts';
import type { Logger } from '../logger.ts';

/** Whose modules, and with what. */
export interface ModuleOptions {
  /** Whether the agent gives pods their network. */
  readonly pods: boolean;
  /** Runs modprobe. */
  readonly exec: Exec;
  readonly logger: Logger;
}

/** A module that the kernel does not load by itself when it is needed; what it makes appear, and what goes wrong without. */
interface WantedModule {
  readonly name: string;
  readonly sysctl: string;
  readonly without: string;
}

const CONNTRACK: WantedModule = {
  name: 'nf_conntrack',
  sysctl: 'net/netfilter/nf_conntrack_max',
  without: 'the limits of connection tracking stay as they are until the first rule loads it',
};
const BRIDGE: WantedModule = {
  name: 'br_netfilter',
  sysctl: 'net/bridge/bridge-nf-call-iptables',
  without: 'Services may not work between pods on the same bridge',
};

/**
 * Loads the modules that the kernel does not load by itself. One that cannot be loaded is a warning that says what follows from it:
 * it may be built in under another name, and Services work without it for the most part. What a mode cannot do without its own
 * look finds missing (`Mode.prepare`).
 */
export async function loadModules({ pods, exec, logger }: ModuleOptions): Promise<void> {
  for (const { name, sysctl, without } of pods ? [CONNTRACK, BRIDGE] : [CONNTRACK]) {
    if (isThere(sysctl)) continue;
    const trouble = await modprobe(name, exec);
    if (isThere(sysctl)) logger.info({ module: name }, 'Kernel module loaded');
    else {
      const reason = trouble ?? `there is no sysctl ${sysctl.replaceAll('/', '.')} afterwards`;
      logger.warn(
        { module: name, reason },
        `Kernel module ${name} is not there: ${without}; run "modprobe ${name}" on the node, or give this container CAP_SYS_MODULE and /lib/modules`,
      );
    }
  }
}

async function modprobe(name: string, exec: Exec): Promise<string | undefined> {
  try {
    const { status, stderr } = await exec('modprobe', [name]);
    return status === 0 ? undefined : stderr.trim() || `modprobe ended with status ${status}`;
  } catch (error) {
    return errorText(error);
  }
}

function isThere(sysctl: string): boolean {
  return attempt(() => readSysctl(sysctl)) !== undefined;
}
