import { CNI_ERROR, type CniReply, type Environment } from '../../cni/index.ts';
import { type Clock, errorText } from '../../core/index.ts';
import type { Logger } from '../logger.ts';
import type { ReceivedRequest } from './connection.ts';
import { type CompletedConfig, completeConfig, type NodeNetwork } from './node-config.ts';
import { decodeKeptRequest, type PluginAnswer, type PluginRequest, refusal } from './protocol.ts';
import type { ServedRequest } from './request-log.ts';
import { RequestQueue, type Ticket } from './request-queue.ts';
import type { KeptRequest, Spool } from './spool.ts';

/** One run of the plugin: the request, with a descriptor that stays the caller's. */
export interface PluginRun {
  readonly environment: Environment;
  readonly stdin: string;
  readonly netns: number | undefined;
}

export interface PluginServiceOptions {
  /** Runs the plugin; several times at once. */
  readonly run: (request: PluginRun) => Promise<CniReply>;
  /** Asked at each request. */
  readonly node: () => NodeNetwork;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told about each request that was answered. */
  readonly served: (request: ServedRequest) => void;
  /** How long a request may wait for others, in milliseconds. @default 45000, a little less than the plugin waits */
  readonly waitMs?: number;
  /** How many requests go on at once. @default 16 */
  readonly concurrency?: number;
}

/** Who asks, as far as it matters whether they still want to know. */
export interface Asker {
  /** Resolves when they have gone. */
  readonly left: Promise<void>;
  /** Whether they have gone by now, also if there was no time yet to hear of it. */
  hasLeft(): boolean;
}

/** Errors of a kept request that trying again does not heal. */
const HOPELESS: ReadonlySet<number> = new Set([
  CNI_ERROR.INCOMPATIBLE_VERSION,
  CNI_ERROR.UNSUPPORTED_FIELD,
  CNI_ERROR.INVALID_ENVIRONMENT,
  CNI_ERROR.DECODING_FAILURE,
  CNI_ERROR.INVALID_NETWORK_CONFIG,
]);
const NOT_KNOWN_YET = 'The pod CIDRs of this node are not known yet';

/** Serves requests of the plugin: in order where they exclude each other, and with what the agent knows of its node. */
export class PluginService {
  readonly #options: PluginServiceOptions;
  readonly #queue: RequestQueue;
  #stopping = false;
  #stop: () => void = () => {};
  readonly #stopped = new Promise<void>((resolve) => {
    this.#stop = resolve;
  });
  #settled: () => void = () => {};
  readonly #firstSettled = new Promise<void>((resolve) => {
    this.#settled = resolve;
  });

  constructor(options: PluginServiceOptions) {
    this.#options = options;
    this.#queue = new RequestQueue(options.concurrency ?? 16);
  }

  /**
   * Answers one request. Never rejects.
   *
   * @returns undefined when nobody wants the answer any more; nothing of the request is in force then
   */
  async serve(request: ReceivedRequest, asker: Asker): Promise<PluginAnswer | undefined> {
    const { clock, served } = this.#options;
    const startedAt = clock.now();
    let reply: Reply | undefined;
    try {
      reply = await this.#answer(request, asker);
    } catch (error) {
      reply = { answer: refusal(CNI_ERROR.INTERNAL, `Internal error: ${errorText(error)}`), remarks: '' };
    }
    if (!reply) return undefined;
    const seconds = (clock.now() - startedAt) / 1000;
    const { environment, config } = request;
    served({ environment, config, answer: reply.answer, seconds, remarks: reply.remarks });
    return reply.answer;
  }

  /** Whether an ADD of this configuration would succeed as far as can be told: what STATUS answers. */
  async status(config: string): Promise<PluginAnswer> {
    const environment = { CNI_COMMAND: 'STATUS', CNI_PATH: '/opt/cni/bin' };
    return (await this.#status({ environment, config })).answer;
  }

  /**
   * Does what was asked for while no agent ran. The first time it also opens the way for ADD, which must not overtake a DEL
   * of an earlier container of the same ID. What fails and may be healed stays for the next time.
   */
  async settle(): Promise<void> {
    const { spool, clock } = this.#options;
    spool.sweep(clock.wallTime());
    for (const kept of spool.list()) {
      const request = this.#open(kept);
      if (!request) continue;
      const ticket = this.#enter(request.environment, completeConfig(request.config, this.#options.node()));
      await ticket.turn;
      try {
        await this.#settleOne(kept, request);
      } finally {
        ticket.leave();
      }
    }
    this.#settled();
  }

  /** Lets what goes on end; what waits is told to try again later. Resolves when nothing goes on. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#stop();
    while (this.#queue.length > 0) await new Promise<void>((resolve) => void this.#options.clock.setTimer(resolve, 5));
  }

  async #answer(received: ReceivedRequest, asker: Asker): Promise<Reply | undefined> {
    const { CNI_COMMAND: verb, CNI_NETNS: netns = '' } = received.environment;
    if (verb === 'VERSION') return this.#run(received);
    if (verb === 'STATUS') return this.#status(received);
    let request: ReceivedRequest = received;
    if (netns !== '' && received.netns === undefined) {
      // The path may mean something else here than on the host, so it is not tried.
      if (verb !== 'DEL') return refused(CNI_ERROR.INVALID_ENVIRONMENT, `Cannot open CNI_NETNS "${netns}" on the host`);
      request = { ...received, environment: { ...received.environment, CNI_NETNS: '' } };
    }
    const completed = completeConfig(request.config, this.#options.node());
    const ticket = this.#enter(request.environment, completed);
    try {
      const turn = verb === 'DEL' ? ticket.turn : Promise.all([ticket.turn, this.#firstSettled]).then(() => {});
      const outcome = await this.#wait(turn, asker);
      if (outcome === 'left') return undefined;
      if (outcome !== 'turn') return refused(CNI_ERROR.TRY_AGAIN_LATER, outcome);
      return await this.#runInTurn(request, completed, asker);
    } finally {
      ticket.leave();
    }
  }

  async #wait(turn: Promise<void>, asker: Asker): Promise<string> {
    if (this.#stopping) return 'The nodeplane agent is about to end';
    const { clock, waitMs = 45_000 } = this.#options;
    let cancel = () => {};
    const timeout = new Promise<string>((resolve) => {
      const timer = clock.setTimer(() => resolve('The nodeplane agent is busy with other requests'), waitMs);
      cancel = () => timer.cancel();
    });
    const outcome = await Promise.race([
      turn.then(() => 'turn'),
      asker.left.then(() => 'left'),
      this.#stopped.then(() => 'The nodeplane agent is about to end'),
      timeout,
    ]);
    cancel();
    return outcome;
  }

  async #runInTurn(
    request: ReceivedRequest,
    { config, lacksRanges }: CompletedConfig,
    asker: Asker,
  ): Promise<Reply | undefined> {
    const { CNI_COMMAND: verb } = request.environment;
    if (verb !== 'ADD') return this.#run({ ...request, config });
    if (lacksRanges) return refused(CNI_ERROR.TRY_AGAIN_LATER, NOT_KNOWN_YET);
    await this.#settleEarlier(request.environment);
    const reply = await this.#run({ ...request, config });
    if (reply.answer.exitCode !== 0 || !asker.hasLeft()) return reply;
    // The plugin was killed. Its runtime takes the ADD for failed and may never ask for a DEL.
    const environment: Environment = { ...request.environment, CNI_COMMAND: 'DEL' };
    const undone = await this.#run({ ...request, environment, config });
    const { CNI_CONTAINERID: container, CNI_IFNAME: ifname } = environment;
    const facts = { container, ifname, ...(undone.answer.exitCode !== 0 && { failed: undone.answer.stdout }) };
    this.#options.logger.warn(facts, 'CNI ADD taken back: the plugin that asked for it is gone');
    return undefined;
  }

  async #status(request: PluginRequest): Promise<Reply> {
    const { config, lacksRanges } = completeConfig(request.config, this.#options.node());
    if (lacksRanges) return refused(CNI_ERROR.PLUGIN_NOT_AVAILABLE, NOT_KNOWN_YET);
    return this.#run({ ...request, config });
  }

  async #run({ environment, config, netns }: PluginRequest & { readonly netns?: number | undefined }): Promise<Reply> {
    const { exitCode, stdout, stderr } = await this.#options.run({ environment, stdin: config, netns });
    return { answer: { exitCode, stdout }, remarks: stderr };
  }

  #enter(environment: Environment, { network }: CompletedConfig): Ticket {
    const { CNI_COMMAND: verb, CNI_CONTAINERID: container, CNI_IFNAME: ifname } = environment;
    const wholeNetwork = verb === 'GC';
    return this.#queue.enter({
      network,
      wholeNetwork,
      attachment: wholeNetwork ? undefined : attachmentOf({ container, ifname }),
    });
  }

  /** A DEL that was kept after the last look at the spool must not meet the container that has its ID now. */
  async #settleEarlier({ CNI_CONTAINERID: container, CNI_IFNAME: ifname }: Environment): Promise<void> {
    for (const kept of this.#options.spool.list()) {
      const request = this.#open(kept);
      const { environment } = request ?? {};
      if (!request || environment?.CNI_CONTAINERID !== container || environment?.CNI_IFNAME !== ifname) continue;
      await this.#settleOne(kept, request);
    }
  }

  async #settleOne({ name }: KeptRequest, { environment, config: text }: PluginRequest): Promise<void> {
    const { spool, logger, node } = this.#options;
    const { CNI_CONTAINERID: container, CNI_IFNAME: ifname } = environment;
    const { config } = completeConfig(text, node());
    // Its path may name another pod's namespace by now. What is to be removed is found without it.
    const { answer } = await this.#run({ environment: { ...environment, CNI_NETNS: '' }, config });
    if (answer.exitCode === 0) {
      spool.remove(name);
      logger.info({ container, ifname }, 'CNI DEL settled that was asked for while no agent ran');
      return;
    }
    const { code } = JSON.parse(answer.stdout) as { code: number };
    if (HOPELESS.has(code)) spool.remove(name);
    const fate = HOPELESS.has(code) ? 'given up' : 'kept for another try';
    logger.error({ container, ifname, error: answer.stdout }, `CNI DEL from the time no agent ran failed; ${fate}`);
  }

  #open(kept: KeptRequest): PluginRequest | undefined {
    const { spool, logger } = this.#options;
    try {
      const request = decodeKeptRequest(kept.bytes);
      if (request.environment.CNI_COMMAND === 'DEL') return request;
      logger.error({ file: kept.name }, 'A kept CNI request is no DEL; removed');
    } catch (error) {
      logger.error({ err: error, file: kept.name }, 'A kept CNI request cannot be read; removed');
    }
    spool.remove(kept.name);
    return undefined;
  }
}

interface Reply {
  readonly answer: PluginAnswer;
  readonly remarks: string;
}

function refused(code: number, message: string): Reply {
  return { answer: refusal(code, message), remarks: '' };
}

/** Neither part holds a slash when it is valid; when not, it is refused without touching anything. */
function attachmentOf({ container = '', ifname = '' }: { container: string | undefined; ifname: string | undefined }) {
  return `${container}/${ifname}`;
}
