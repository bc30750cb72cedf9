import { joinRules, loadReassertion } from '../../../cni/index.ts';
import {
  type Cidr,
  type Clock,
  type ComparedPart,
  type Drift,
  nothingToCompare,
  Pace,
  REPAIRS,
  type Timer,
} from '../../../core/index.ts';
import { isUnderWay, journalEntries } from '../../../ipam/index.ts';
import { Nftables, type NftEvent } from '../../../netlink/nftables/index.ts';
import { listSysctls } from '../../../sys/index.ts';
import { LastingTrouble, type Logger, RepeatedNews } from '../../logger.ts';
import { JournalRules } from './journal-rules.ts';
import { JumpPace } from './jump-pace.ts';
import { ObstacleWatch } from './obstacle-watch.ts';

export interface FeatureGuardOptions {
  /** Directories of reservations, with the notes about attachments. */
  readonly dataDirs: readonly string[];
  /** Ranges of pods, on whichever node, that the node is to let through: it leads to them what comes for a NodePort. */
  readonly passing: readonly Cidr[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Tells what changes in nf_tables of this node, by whomever. */
  readonly watch: (listener: (event: NftEvent) => void) => { close(): void };
}

/** A reload of a firewall is several transactions; what it leaves is looked at when it is done, ten times a second at most. */
const QUIET_MS = 100;
/** How long an ADD in the middle of its work is left alone before it is looked at again. */
const UNDER_WAY_MS = 1000;
/** Of legacy iptables the kernel tells nothing. A look takes 5 ms with 100 pods. */
const OBSTACLES_MS = 30_000;
/** After a check or a look that could not be made: what was in its way may be gone without anybody telling. */
const RETRY_MS = 5000;
/** When pods come, what is in the way is looked for soon: nobody was told before there was a pod that it is in the way of. */
const OBSTACLES_OF_NEW_PODS_MS = 1000;

/**
 * Brings back the rules of pods when others flush nf_tables, as a reload of firewalld or `nft flush ruleset` does, also
 * when that happened while no agent ran.
 *
 * What the pods should have is noted by each ADD, whichever process it ran in, until the DEL. An attachment whose link is
 * gone is being detached, or vanished; nothing comes back for it.
 */
export class FeatureGuard implements ComparedPart {
  readonly name = 'rules of pods';
  readonly #options: FeatureGuardOptions;
  readonly #pace = new JumpPace();
  /** Of checks that others' changes lead to. */
  readonly #checks = new Pace(REPAIRS);
  /** Others flushed the rules, and let pods through no more. */
  readonly #flushed: RepeatedNews;
  readonly #closed: RepeatedNews;
  readonly #obstacles: ObstacleWatch;
  #rules: JournalRules | undefined;
  #nftables: Nftables | undefined;
  #watch: { close(): void } | undefined;
  #next: { readonly timer: Timer; readonly ms: number } | undefined;
  #look: { readonly timer: Timer; readonly due: number } | undefined;
  #checking: Promise<void> = Promise.resolve();
  /** Why the last check could not be made; undefined: it was. */
  #failure: unknown;
  /** Of checks, and of looks for what is in the way. */
  readonly #trouble: LastingTrouble;

  constructor(options: FeatureGuardOptions) {
    this.#options = options;
    this.#trouble = new LastingTrouble(options.logger);
    this.#flushed = new RepeatedNews(options.logger, options.clock);
    this.#closed = new RepeatedNews(options.logger, options.clock);
    this.#obstacles = new ObstacleWatch(options);
  }

  /** Looks for what is missing, and begins to watch. On a kernel without nf_tables there is nothing to guard. */
  async start(): Promise<void> {
    const { watch, logger } = this.#options;
    try {
      this.#nftables = Nftables.open();
      this.#watch = watch((event) => {
        if (event.kind === 'overrun' || (event.kind === 'generation' && !event.own)) this.#changedByOthers();
      });
    } catch (error) {
      logger.debug({ err: error }, 'nf_tables cannot be watched: flushed rules of pods come back with the next pod');
      return;
    }
    await this.check();
    this.#lookIn(OBSTACLES_MS);
  }

  /** Says that pods come or go. */
  podsChanged(): void {
    this.#lookIn(OBSTACLES_OF_NEW_PODS_MS);
  }

  /** What may drop packets of pods, and cannot be changed from here: a sentence each. */
  obstacles(): string[] {
    return this.#obstacles.told();
  }

  async stop(): Promise<void> {
    this.#watch?.close();
    this.#next?.timer.cancel();
    this.#look?.timer.cancel();
    await this.#checking;
    this.#nftables?.close();
    this.#nftables = undefined;
  }

  /** Compares what is there with what the pods should have, and brings back what is missing. */
  check(): Promise<void> {
    return this.#checkNext({ isAsked: false });
  }

  #checkNext(reason: { readonly isAsked: boolean }): Promise<void> {
    const check = () => this.#check(reason);
    this.#checking = this.#checking.then(check, check);
    return this.#checking;
  }

  /** In what the rules of pods differ from those noted by their ADDs. Rejects with ERR_DIFF, errors of reading the kernel. */
  compare(): Promise<readonly Drift[]> {
    const compared = this.#checking.then(
      () => this.#compare(),
      () => this.#compare(),
    );
    this.#checking = compared.then(
      () => {},
      () => {},
    );
    return compared;
  }

  /** As `check`, but rejects with why it cannot be done, and leaves nothing for later. */
  async repair(): Promise<void> {
    await this.#checkNext({ isAsked: true });
    if (!this.#nftables) throw unreadable();
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #compare(): Promise<readonly Drift[]> {
    if (!this.#nftables) throw unreadable();
    const { compareFeatures, wanted } = await this.#reassertion();
    return compareFeatures(this.#nftables, wanted().rules, linkNames);
  }

  #changedByOthers(): void {
    this.#schedule(Math.max(QUIET_MS, this.#checks.leftMs(this.#options.clock.now())));
  }

  #schedule(ms: number): void {
    if (this.#next && this.#next.ms <= ms) return;
    this.#next?.timer.cancel();
    const timer = this.#options.clock.setTimer(() => {
      this.#next = undefined;
      this.#checks.passed(this.#options.clock.now());
      return this.check();
    }, ms);
    this.#next = { timer, ms };
  }

  async #check({ isAsked }: { readonly isAsked: boolean }): Promise<void> {
    const { logger, clock } = this.#options;
    const nftables = this.#nftables;
    if (!nftables) return;
    this.#failure = undefined;
    try {
      const { reassertFeatures, obstaclesOf, wanted } = await this.#reassertion();
      const { entries, rules } = wanted();
      const movesJump = isAsked || this.#pace.leftMs(clock.now()) === 0;
      const repair = reassertFeatures(nftables, rules, linkNames, { movesJump });
      if (repair.structureRepaired || repair.elementsAdded > 0) {
        this.#flushed.tell('warn', { ...repair }, 'Rules of pods were flushed by others; they are back');
      } else if (repair.admissionRepaired) {
        this.#closed.tell('info', {}, 'Pods are let through chain FORWARD now, which others made or changed');
      }
      if (repair.jump === 'moved') {
        this.#pace.moved(clock.now());
        logger.info('Pods are let through at the end of chain FORWARD again, behind rules that others put there');
      } else if (repair.jump === 'left') {
        this.#schedule(this.#pace.leftMs(clock.now()));
      }
      // What it has made so far may have been flushed, and cannot be told from what it has yet to make.
      if (entries.some((entry) => entry.note && isUnderWay(entry))) this.#schedule(UNDER_WAY_MS);
      this.#tellObstacles(() => obstaclesOf(nftables, rules));
      this.#trouble.over();
    } catch (error) {
      this.#failure = error;
      this.#tellFailure(error);
      this.#schedule(RETRY_MS);
    }
  }

  #tellFailure(error: unknown): void {
    this.#trouble.tell(error, 'The rules of pods cannot be looked after; it is tried again');
  }

  #tellObstacles(look: () => readonly string[] | undefined): void {
    this.#lookIn(this.#obstacles.look(look) ?? OBSTACLES_MS);
  }

  #lookIn(ms: number): void {
    const { clock } = this.#options;
    const due = clock.now() + ms;
    if (this.#look && this.#look.due <= due) return;
    this.#look?.timer.cancel();
    const timer = clock.setTimer(() => {
      this.#look = undefined;
      return this.#lookForObstacles();
    }, ms);
    this.#look = { timer, due };
  }

  async #lookForObstacles(): Promise<void> {
    try {
      const { obstaclesOf, wanted } = await this.#reassertion();
      const nftables = this.#nftables;
      if (nftables) this.#tellObstacles(() => obstaclesOf(nftables, wanted().rules));
    } catch (error) {
      this.#tellFailure(error);
      // As a check does, which also tells when it is over.
      this.#schedule(RETRY_MS);
    }
  }

  /** What can be done, and `wanted`, which reads what the pods should have by the notes about them, and pods of other nodes here. */
  async #reassertion() {
    const { featuresOf, passageOf, ...actions } = await loadReassertion();
    const { dataDirs, passing } = this.#options;
    this.#rules ??= new JournalRules(featuresOf);
    const known = this.#rules;
    const wanted = () => {
      const entries = dataDirs.flatMap(journalEntries);
      return { entries, rules: joinRules([known.of(entries, linkNames()), passageOf(passing)]) };
    };
    return { ...actions, wanted };
  }
}

const unreadable = () => nothingToCompare('rules of pods', 'nf_tables of this node cannot be read');

/**
 * By their sysctls: a listing by netlink waits for the kernel's lock of all links, for seconds while many pods come or go, and
 * the event loop with it.
 */
function linkNames(): Set<string> {
  return new Set(listSysctls('net/ipv4/conf'));
}
