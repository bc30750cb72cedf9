import { setFlagsFromString } from 'node:v8';
import { ConfigWatch, type KubeProxyConfig, type LoadedFile, type Program, systemFiles } from '../config/index.ts';
import { inBackground, systemClock } from '../core/index.ts';
import { agentFlags, returnFreedMemory, trimAfterStart, useProcSysRoot } from '../sys/index.ts';
import { Agent } from './agent.ts';
import { BackgroundFailures } from './background-failures.ts';
import { ModeOverride } from './effective/mode-override.ts';
import { createLogger, type Logger } from './logger.ts';
import type { Build } from './metrics/component-metrics.ts';
import { setUpNode } from './node-setup.ts';
import { preflight } from './preflight.ts';
import { NodeClaim } from './standby/node-claim.ts';

/** When memory is given back that only the start needed: most agents have begun their work then, slow ones a little later. */
const TRIM_AFTER_MS = [10_000, 60_000];

/** How long the process stays when the agent has ended: whatever is open still is nobody's, and a kubelet waits for its end. */
const LINGERING_MS = 1000;

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
  /** The command line, without the program and `agent`. */
  readonly argv: readonly string[];
  readonly build: Build;
  /** The configuration in another mode, or why there is none, in words. */
  readonly inMode: (mode: string) => KubeProxyConfig | string;
  /** Why nobody could start with the configuration file as it is given here, in words; undefined: one could. */
  readonly objectionTo: (file: LoadedFile) => string | undefined;
}

/**
 * Runs the agent until SIGTERM, SIGINT or SIGHUP. The rules stay in the kernel then: connections go on while the agent is
 * restarted or upgraded. What ends it otherwise is the last line of the log, and makes the exit status 1.
 */
export async function runAgent(work: AgentWork): Promise<void> {
  const logger = createLogger(work.config.logging);
  try {
    await runUntilSignal(work, logger);
  } catch (error) {
    logger.fatal({ err: error }, `${work.program} ends; the rules stay in place`);
    process.exitCode = 1;
  }
}

/**
 * @throws ERR_CONFIG, ERR_IPTABLES, ERR_NFTABLES or ERR_IPVS when the machine, the manifest folder or the credentials cannot be
 *   used at all, and ERR_CONFIG when the configuration file changed. With --cni the proxy alone waits for what it needs.
 */
async function runUntilSignal(work: AgentWork, logger: Logger): Promise<void> {
  const { program, config, configFile, messages, flags, argv, build, inMode } = work;
  for (const flag of agentFlags()) setFlagsFromString(flag);
  returnFreedMemory();
  const failures = new BackgroundFailures(logger);
  failures.listen();
  const { nodeName: node, mode, manifests } = config;
  logger.info({ version: build.version, node, mode, ...(manifests !== '' && { manifests }) }, `${program} starts`);
  for (const { level, verbosity, text } of messages) if (verbosity <= config.logging.verbosity) logger[level](text);

  let unusable: (error: Error) => void = () => {};
  const ended = new Promise<NodeJS.Signals | Error>((resolve) => {
    unusable = resolve;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve(signal));
    if (configFile) watchConfig(configFile, work, logger, resolve);
  });
  // Without listeners SIGUSR2 would kill, and SIGUSR1 let any process of the node debug this one: node's inspector asks for
  // no password.
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) {
    process.on(signal, () => logger.info({ signal }, `${program} does nothing at this signal`));
  }
  useProcSysRoot(config.procSysRoot);
  const machineFamilies = preflight(logger);
  const mayLack = program === 'kube-proxy';
  const claim = NodeClaim.open({ directory: config.agentLockDir, mayLack, clock: systemClock, logger });
  const override = new ModeOverride({ configured: config, inMode, logger });
  // Nothing else may: a standby without ports and without an API server to talk to has only timers.
  const alive = setInterval(() => {}, 2 ** 30);
  const trim = () => inBackground('return of memory', trimAfterStart);
  const trims = TRIM_AFTER_MS.map((ms) => systemClock.setTimer(trim, ms));
  try {
    for (;;) {
      let beginAnew: () => void = () => {};
      const outdated = new Promise<'outdated'>((resolve) => {
        beginAnew = () => resolve('outdated');
      });
      const inForce = override.config;
      const agent = await Agent.create({
        program,
        config: inForce,
        flags,
        argv,
        build,
        logger,
        clock: systemClock,
        failures,
        machineFamilies,
        ownNodeChanged: (seen) => {
          const verdict = override.look(seen);
          if (verdict?.kind === 'restart') beginAnew();
          return verdict;
        },
        claim,
        setUpNode: () => setUpNode(inForce, logger),
        unusable,
      });
      try {
        await agent.start();
        const reason = await Promise.race([ended, outdated]);
        if (reason === 'outdated') continue;
        if (reason instanceof Error) throw reason;
        logger.info({ signal: reason }, `${program} stops; the rules stay in place`);
        return;
      } finally {
        await agent.stop();
      }
    }
  } finally {
    // Whoever stands by writes from now on.
    claim.release();
    clearInterval(alive);
    for (const timer of trims) timer.cancel();
    // Of a timer that keeps no process alive: it comes only where something else does.
    systemClock.setTimer(() => {
      logger.warn({ open: process.getActiveResourcesInfo() }, 'Something is open still: the process ends without it');
      process.exit();
    }, LINGERING_MS);
  }
}

/** As kube-proxy, whose command line has no such setting, `kube-proxy` ends at once. */
function watchConfig(
  file: LoadedFile,
  { program, config, objectionTo }: AgentWork,
  logger: Logger,
  ended: (reason: Error) => void,
): void {
  const putOff = (ms: number | undefined) => {
    if (ms === undefined) logger.info('The configuration file is as before: going on');
    else {
      const inSeconds = Math.round(ms / 1000);
      logger.info({ inSeconds }, 'The configuration file has changed: ending soon, at another time than other nodes');
    }
  };
  const spreadMs = program === 'kube-proxy' ? 0 : config.configChangeSpreadMs;
  const refused = (reason: string) => {
    logger.error({ reason }, 'The configuration file has changed and cannot be used: going on with the one before');
  };
  const objection = (text: string) => objectionTo({ ...file, text });
  const options = { file, files: systemFiles, clock: systemClock, spreadMs, putOff, objection, refused, ended };
  new ConfigWatch(options).start();
}
