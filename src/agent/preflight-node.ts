import type { KubeProxyConfig } from '../config/index.ts';
import { systemClock } from '../core/index.ts';
import { type PreflightReport, readCluster, readNode, reportOf, runChecks } from '../preflight/index.ts';
import type { ProxyMode } from '../proxy/index.ts';
import { type Exec, exec } from '../sys/index.ts';
import { CONFLIST_FILE, PLUGIN_NAME } from './cni/install/conflist.ts';
import { createLogger } from './logger.ts';
import { createClient, createSource } from './object-source.ts';

/** What to look at. */
export interface PreflightOptions {
  /** What the agent of this node is going to run with. */
  readonly config: KubeProxyConfig;
  /** What it is going to warn of about its flags and file. */
  readonly warnings: readonly string[];
  /** The mode in which Services work until now. @default told by the rules that are there */
  readonly presentMode?: ProxyMode | undefined;
  /** Whether warnings make the report fail. */
  readonly strict: boolean;
  /** Of the program. */
  readonly version: string;
}

/** A server that accepts and says nothing shall not keep anybody waiting; all checks together take no longer than one. */
const PATIENCE_MS = 15_000;
const LIMIT_MS = 20_000;

/** Looks whether the agent could work on this node, and what would change. Changes nothing, never rejects. */
export async function preflightNode(options: PreflightOptions): Promise<PreflightReport> {
  const { config, warnings, presentMode, strict, version } = options;
  const clock = systemClock;
  const observe = () => {};
  const ending = new AbortController();
  const impatient: Exec = (program, args, given) =>
    exec(program, args, { ...given, timeoutMs: PATIENCE_MS, signal: ending.signal });
  const client = await createClient({ config, clock, observe, userAgent: 'nodeplane-preflight' }).catch(
    (error: Error) => error,
  );
  const usable = client instanceof Error ? undefined : client;
  const logger = createLogger({ ...config.logging, level: 'error' });
  const { nodeName, mode, iptablesVariant } = config;
  try {
    const findings = await runChecks(
      {
        config,
        warnings,
        presentMode,
        conflistFile: CONFLIST_FILE,
        pluginType: PLUGIN_NAME,
        node: readNode({ exec: impatient, variant: iptablesVariant === 'auto' ? undefined : iptablesVariant }),
        cluster: readCluster({
          config,
          client,
          source: (resources) => createSource({ config, clock, logger, observe, client: usable, resources }).source,
          patienceMs: PATIENCE_MS,
        }),
      },
      { limitMs: LIMIT_MS },
    );
    return reportOf(findings, { version, node: nodeName, mode, strict });
  } finally {
    ending.abort();
    usable?.close();
  }
}
