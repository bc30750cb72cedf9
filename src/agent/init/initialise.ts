import { Registry } from 'prom-client';
import type { KubeProxyConfig } from '../../config/index.ts';
import { systemClock } from '../../core/index.ts';
import { exec, useProcSysRoot } from '../../sys/index.ts';
import { installPlugin, readHostPlugin } from '../cni/install/plugin.ts';
import { createLogger } from '../logger.ts';
import { setUpNode } from '../node-setup.ts';
import { preflight } from '../preflight.ts';
import { MODES } from '../services/modes/modes.ts';
import { preparePatiently } from '../services/modes/prepare-patiently.ts';
import { loadModules } from './kernel-modules.ts';

/**
 * `--init-only`: what needs more privileges than the agent has afterwards, in a container of its own that ends. Loads kernel
 * modules, sets the sysctls that the agent would set at its start, and with --cni puts the plugin on the host; its configuration
 * follows when the agent can serve it. May be done again at any time.
 *
 * @throws ERR_CONFIG without CAP_NET_ADMIN or sysctls; what the mode finds missing in the kernel; ERR_CNI_INSTALL, or why a sysctl
 *   that the mode needs cannot be written
 */
export async function initialise(config: KubeProxyConfig): Promise<void> {
  const { mode, cni } = config;
  const logger = createLogger(config.logging);
  useProcSysRoot(config.procSysRoot);
  await loadModules({ pods: cni !== undefined, exec, logger });
  const families = preflight(logger);
  const prepared = await preparePatiently({
    attempt: (cancellable) => MODES[mode].prepare(config, { families, exec: cancellable, logger }),
    failureIsFatal: true,
    exec,
    clock: systemClock,
    logger,
    signal: new AbortController().signal,
  });
  // What the mode sets once for the node. Its metrics are nobody's here.
  prepared?.begin(new Registry());
  setUpNode(config, logger);
  if (cni) await installPlugin({ binDir: cni.binDir, plugin: readHostPlugin(), logger });
  logger.info({ mode, cni: cni !== undefined }, 'The node is set up for an agent with fewer privileges');
}
