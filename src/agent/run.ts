import { ConfigWatch, type KubeProxyConfig, type LoadedFile, type Program, systemFiles } from '../config/index.ts';
import { systemClock } from '../core/index.ts';
import { exec, returnFreedMemory } from '../sys/index.ts';
import { Agent } from './agent.ts';
import { BackgroundFailures } from './background-failures.ts';
import { createLogger } from './logger.ts';
import type { Build } from './metrics/component-metrics.ts';
import { setUpNode } from './node-setup.ts';
import { preflight } from './preflight.ts';
import { MODES } from './services/modes/modes.ts';
import { preparePatiently } from './services/modes/prepare-patiently.ts';
import { NodeClaim } from './standby/node-claim.ts';

/** What to run, as the command line says. */
export interface AgentWork {
  readonly program: Program;
  readonly config: KubeProxyConfig;
  /** The file the configuration came from; when it changes, the agent ends so that a supervisor starts it anew. */
  readonly configFile: LoadedFile | undefined;
  /** What reading the configuration had to say; `verbosity` is compared with the configured one. */
  readonly messages: readonly { readonly level: 'info' | 'warn'; readonly verbosity: number; readonly text: string }[];
  /** Every flag with its value as text, for /flagz. */
  readonly flags: Readonly<Record<string, string>>;
  readonly build: Build;
}

/**
 * Runs the agent until SIGTERM, SIGINT or SIGHUP. The rules stay in the kernel then: connections go on while the agent is
 * restarted or upgraded.
 *
 * @throws ERR_CONFIG, ERR_IPTABLES, ERR_NFTABLES or ERR_IPVS when the machine, the manifest folder or the credentials cannot be
 *   used at all, and ERR_CONFIG when the configuration file changed. With --cni the proxy alone waits for what it needs.
 */
export async function runAgent({ program, config, configFile, messages, flags, build }: AgentWork): Promise<void> {
  returnFreedMemory();
  const logger = createLogger(config.logging);
  const failures = new BackgroundFailures(logger);
  failures.listen();
  const { nodeName: node, mode, manifests } = config;
  logger.info({ version: build.version, node, mode, ...(manifests !== '' && { manifests }) }, `${program} starts`);
  for (const { level, verbosity, text } of messages) if (verbosity <= config.logging.verbosity) logger[level](text);

  let unusable: (error: Error) => void = () => {};
  const ended = new Promise<NodeJS.Signals | Error>((resolve) => {
    unusable = resolve;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve(signal));
    if (configFile)
      new ConfigWatch({ file: configFile, files: systemFiles, clock: systemClock, ended: resolve }).start();
  });
  // Without listeners SIGUSR2 would kill, and SIGUSR1 let any process of the node debug this one: node's inspector asks for
  // no password.
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) {
    process.on(signal, () => logger.info({ signal }, `${program} does nothing at this signal`));
  }
  const machineFamilies = preflight(logger);
  const mayLack = program === 'kube-proxy';
  const claim = NodeClaim.open({ directory: config.agentLockDir, mayLack, clock: systemClock, logger });
  const agent = await Agent.create({
    program,
    config,
    flags,
    build,
    logger,
    clock: systemClock,
    failures,
    machineFamilies,
    claim,
    setUpNode: () => setUpNode(config, logger),
    unusable,
  });
  // Nothing else may: a standby without ports and without an API server to talk to has only timers.
  const alive = setInterval(() => {}, 2 ** 30);
  try {
    await agent.start();
    const reason = await ended;
    if (reason instanceof Error) throw reason;
    logger.info({ signal: reason }, `${program} stops; the rules stay in place`);
  } finally {
    await agent.stop();
    // Whoever stands by writes from now on.
    claim.release();
    clearInterval(alive);
  }
}

/** `--init-only`: what needs privileges, so that the container that runs afterwards can do without them. */
export async function initialise(config: KubeProxyConfig): Promise<void> {
  const logger = createLogger(config.logging);
  const families = preflight(logger);
  const mode = MODES[config.mode];
  await preparePatiently({
    attempt: (cancellable) => mode.prepare(config, { families, exec: cancellable, logger }),
    failureIsFatal: true,
    exec,
    clock: systemClock,
    logger,
    signal: new AbortController().signal,
  });
  setUpNode(config, logger);
}
