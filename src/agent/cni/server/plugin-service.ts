import { CNI_ERROR, type CniReply, type Environment } from '../../../cni/index.ts';
import { type Clock, errorText, NodeplaneError, sleep } from '../../../core/index.ts';
import type { Logger } from '../../logger.ts';
import { KeptRequests } from '../kept/kept-requests.ts';
import type { SetAsideReason } from '../kept/set-aside.ts';
import type { Spool } from '../kept/spool.ts';
import type { ReceivedRequest } from './connection.ts';
import { type CompletedConfig, completeConfig, type NodeNetwork } from './node-config.ts';
import { LARGEST_ANSWER, type PluginAnswer, type PluginRequest, refusal } from './protocol.ts';
import type { ServedRequest } from './request-log.ts';
import { RequestQueue, type Ticket } from './request-queue.ts';

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
  /** Called with each request that was answered. */
  readonly served: (request: ServedRequest) => void;
  /** Called with the reason for which a kept request will not be tried again. */
  readonly setAside: (reason: SetAsideReason) => void;
  /** Where the runtime has its plugins, for requests that come from no runtime. */
  readonly binDir: string;
  /** How long a request may wait for others, in milliseconds. @default 45000, a little less than the plugin waits */
  readonly waitMs?: number;
  /** How many requests go on at once. @default 16 */
  readonly concurrency?: number;
}

/** Who asks, as far as it matters whether they still want to know. */
export interface Client {
  /** Resolves when they have gone. */
  readonly left: Promise<void>;
  /** Whether they have gone by now, also if there was no time yet to hear of it. */
  hasLeft(): boolean;
}

const ENDING = 'The nodeplane agent is about to end';
const BUSY = 'The nodeplane agent is busy with other requests';
const NOT_KNOWN_YET = 'The pod CIDRs of this node are not known yet';
/** How long ADDs wait for the kept DELs at most; hanging ones may take long. A little less than a request waits. */
const LONGEST_SETTLING_MS = 30_000;
/** How long what goes on may take to end when the agent stops: a kubelet kills it after 30 s. */
const LONGEST_ENDING_MS = 20_000;
/** Between two looks whether it has. */
const ENDING_LOOK_MS = 5;

/** Serves requests of the plugin: in order where they exclude each other, and with what the agent knows of its node. */
export class PluginService {
  readonly #options: PluginServiceOptions;
  readonly #queue: RequestQueue;
  readonly #kept: KeptRequests;
  /** Ends the wait of each request whose turn has not come, with a sentence why. */
  readonly #waiting = new Set<(why: string) => void>();
  #stopping = false;
  #settled: () => void = () => {};
  /**
   * Resolves when the kept DELs were looked through for the first time, that took too long, or the service stops: ADDs
   * are served then.
   */
  readonly open = new Promise<void>((resolve) => {
    this.#settled = resolve;
  });

  constructor(options: PluginServiceOptions) {
    this.#options = options;
    this.#queue = new RequestQueue(options.concurrency ?? 16);
    const { spool, logger, setAside } = options;
    const run = async (request: PluginRequest) => {
      const { config } = completeConfig(request.config, options.node());
      return (await this.#run({ ...request, config })).answer;
    };
    this.#kept = new KeptRequests({ spool, logger, setAside, run });
  }

  /**
   * Answers one request. Never rejects.
   *
   * @returns undefined when nobody wants the answer any more; nothing of the request is in force then
   */
  async serve(request: ReceivedRequest, client: Client): Promise<PluginAnswer | undefined> {
    const { clock, served } = this.#options;
    const startedAt = clock.now();
    let reply: Reply | undefined;
    try {
      reply = await this.#answer(request, client);
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
    const environment = { CNI_COMMAND: 'STATUS', CNI_PATH: this.#options.binDir };
    return (await this.#status({ environment, config })).answer;
  }

  /**
   * Does what was asked for while no agent ran. The first time it also opens the way for ADD, which must not overtake a DEL
   * of an earlier container of the same ID. What fails and may be healed stays for the next time; one does not keep another.
   */
  async settle(): Promise<void> {
    const { spool, clock } = this.#options;
    const timer = clock.setTimer(this.#settled, LONGEST_SETTLING_MS);
    try {
      spool.sweep(clock.wallTime());
      for (const kept of this.#kept.pending()) {
        if (this.#stopping) return;
        const { environment, config } = kept.request;
        const ticket = this.#enter(environment, completeConfig(config, this.#options.node()));
        await ticket.turn;
        await this.#kept.settle(kept).finally(ticket.leave);
      }
    } finally {
      timer.cancel();
      this.#settled();
    }
  }

  /** Lets what goes on end, for up to 20 s; what waits is told to try again later. Opens the way, for whoever waits for that. */
  async stop(): Promise<void> {
    const { clock } = this.#options;
    this.#stopping = true;
    for (const end of this.#waiting) end(ENDING);
    this.#settled();
    const deadline = clock.now() + LONGEST_ENDING_MS;
    while (this.#queue.length > 0 && clock.now() < deadline) {
      await sleep(clock, ENDING_LOOK_MS);
    }
  }

  async #answer(received: ReceivedRequest, client: Client): Promise<Reply | undefined> {
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
      const turn = verb === 'DEL' ? ticket.turn : Promise.all([ticket.turn, this.open]).then(() => {});
      const outcome = await this.#wait(turn, client);
      if (outcome === 'left') return undefined;
      if (outcome !== 'turn') return refused(CNI_ERROR.TRY_AGAIN_LATER, outcome);
      return await this.#runInTurn(request, completed, client);
    } finally {
      ticket.leave();
    }
  }

  /** Resolves to 'turn' or 'left', or to a sentence why the request must not wait any more. */
  async #wait(turn: Promise<void>, client: Client): Promise<string> {
    if (this.#stopping) return ENDING;
    const { clock, waitMs = 45_000 } = this.#options;
    let end: (outcome: string) => void = () => {};
    const outcome = new Promise<string>((resolve) => {
      end = resolve;
    });
    // A promise that lives as long as the agent would remember every request that ever waited for it.
    this.#waiting.add(end);
    const timer = clock.setTimer(() => end(BUSY), waitMs);
    void turn.then(() => end('turn'));
    void client.left.then(() => end('left'));
    return outcome.finally(() => {
      timer.cancel();
      this.#waiting.delete(end);
    });
  }

  async #runInTurn(request: ReceivedRequest, completed: CompletedConfig, client: Client): Promise<Reply | undefined> {
    const { CNI_COMMAND: verb } = request.environment;
    if (verb !== 'ADD') return this.#run({ ...request, config: completed.config });
    // A DEL that was kept after the last look at the spool must not meet the container that has its ID now.
    await this.#kept.settleBefore(request.environment);
    const node = this.#options.node();
    // Ranges may have been given back while it waited.
    const { config, lacksRanges } = completeConfig(request.config, node);
    if (lacksRanges) return refused(CNI_ERROR.TRY_AGAIN_LATER, NOT_KNOWN_YET, node.ranges.lacking);
    let reply: Reply;
    try {
      reply = await this.#run({ ...request, config });
    } catch (error) {
      await this.#takeBack(request, config, 'it ended without a result');
      throw error;
    }
    if (reply.answer.exitCode !== 0 || !client.hasLeft()) return reply;
    // The plugin was killed. Its runtime takes the ADD for failed and may never ask for a DEL.
    await this.#takeBack(request, config, 'the plugin that asked for it is gone');
    return undefined;
  }

  async #takeBack(request: ReceivedRequest, config: string, why: string): Promise<void> {
    const environment: Environment = { ...request.environment, CNI_COMMAND: 'DEL' };
    const { CNI_CONTAINERID: container, CNI_IFNAME: ifname } = environment;
    let failed: string | undefined;
    try {
      const { answer } = await this.#run({ ...request, environment, config });
      if (answer.exitCode !== 0) failed = answer.stdout;
    } catch (error) {
      failed = errorText(error);
    }
    this.#options.logger.warn({ container, ifname, ...(failed && { failed }) }, `CNI ADD taken back: ${why}`);
  }

  async #status(request: PluginRequest): Promise<Reply> {
    const node = this.#options.node();
    const { config, lacksRanges } = completeConfig(request.config, node);
    if (lacksRanges) return refused(CNI_ERROR.PLUGIN_NOT_AVAILABLE, NOT_KNOWN_YET, node.ranges.lacking);
    return this.#run({ ...request, config });
  }

  async #run({ environment, config, netns }: PluginRequest & { readonly netns?: number | undefined }): Promise<Reply> {
    const { exitCode, stdout, stderr } = await this.#options.run({ environment, stdin: config, netns });
    const length = Buffer.byteLength(stdout);
    if (length > LARGEST_ANSWER) {
      const message = `The answer has ${length} bytes, more than the ${LARGEST_ANSWER} the plugin on the host takes`;
      throw new NodeplaneError('ERR_CNI_REQUEST', message);
    }
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
}

interface Reply {
  readonly answer: PluginAnswer;
  readonly remarks: string;
}

function refused(code: number, message: string, details = ''): Reply {
  return { answer: refusal(code, message, details), remarks: '' };
}

/** Neither part holds a slash when it is valid; when not, it is refused without touching anything. */
function attachmentOf({ container = '', ifname = '' }: { container: string | undefined; ifname: string | undefined }) {
  return `${container}/${ifname}`;
}
