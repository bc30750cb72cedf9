import { errorText } from '../../core/index.ts';
import { readTrackingCounters, type UnansweredWatch, watchUnanswered } from '../../netlink/conntrack/index.ts';
import { closing } from '../../netlink/index.ts';
import { Nftables, type NftCommit, watchCommits } from '../../netlink/nftables/index.ts';
import { isOwnProcess } from '../../sys/index.ts';
import type { Part, PartContext } from '../part.ts';
import { restoreLog } from '../trace/legacy/divert-log.ts';
import { TRACE_TABLE } from '../trace/trace-table.ts';
import { type CounterSample, CounterSamples } from './counter-samples.ts';
import { type RuleChange, RuleChanges } from './rule-changes.ts';
import { type UnansweredFlow, UnansweredFlows } from './unanswered-flows.ts';

/** What was seen since the agent's start, for questions asked later. */
export interface Evidence {
  /** The last changes that others made to nf_tables, the newest last. Those by legacy iptables the kernel tells nobody. */
  ruleChanges(): readonly RuleChange[];
  /** The last flows that ended without a packet back, the newest last. */
  unanswered(): readonly UnansweredFlow[];
  /** What connection tracking had counted a minute or two ago; null: it was not read yet. */
  countersBefore(): CounterSample | null;
  /** What could not be seen, in words; empty: nothing is known to be missing. */
  gaps(): readonly string[];
}

/** Collects evidence that cannot be had afterwards: who changed rules, and what nobody answered. It costs next to nothing. */
export class EvidencePart implements Part, Evidence {
  readonly #context: Pick<PartContext, 'clock' | 'logger'>;
  readonly #changes: RuleChanges;
  readonly #flows: UnansweredFlows;
  readonly #counters: CounterSamples;
  readonly #unheard: string[] = [];
  #rules: { close(): void } | undefined;
  #conntrack: UnansweredWatch | undefined;

  constructor(context: Pick<PartContext, 'clock' | 'logger'>) {
    this.#context = context;
    this.#changes = new RuleChanges(context.clock);
    this.#flows = new UnansweredFlows(context.clock);
    this.#counters = new CounterSamples(context.clock, readTrackingCounters);
  }

  start(): void {
    const { clock } = this.#context;
    this.#counters.start();
    this.#restoreLog();
    this.#rules = this.#attempt('who changes nf_tables', () => watchCommits((commit) => this.#take(commit)));
    this.#conntrack = this.#attempt('which connections are not answered', () =>
      watchUnanswered((flow) => this.#flows.add(flow), {
        now: () => clock.now(),
        after: (fn, ms) => clock.setTimer(fn, ms),
      }),
    );
  }

  stop(): void {
    this.#counters.stop();
    this.#rules?.close();
    this.#conntrack?.close();
  }

  ruleChanges(): readonly RuleChange[] {
    return this.#changes.kept;
  }

  unanswered(): readonly UnansweredFlow[] {
    this.#conntrack?.catchUp();
    return this.#flows.kept;
  }

  countersBefore(): CounterSample | null {
    return this.#counters.before;
  }

  gaps(): readonly string[] {
    const { missed } = this.#changes;
    const cutShort = this.#conntrack?.cutShort ?? 0;
    return [
      ...this.#unheard,
      ...(missed > 0
        ? [
            `changes of nf_tables were missed ${missed} times, which came too fast or during a large one of the agent: who made those is not known`,
          ]
        : []),
      ...(cutShort > 0 ? [`more connections ended, or ended unanswered, than are looked at, ${cutShort} times`] : []),
    ];
  }

  /** A trace that was killed has left the log of packets with programs. */
  #restoreLog(): void {
    try {
      const isTracing = closing(Nftables.open(), (nft) =>
        nft.listTables('inet').some(({ name }) => name === TRACE_TABLE),
      );
      if (!isTracing) restoreLog();
    } catch (error) {
      this.#context.logger.warn({ err: error }, 'What a live trace has left of itself cannot be put back');
    }
  }

  #take(commit: NftCommit | 'lost'): void {
    if (commit !== 'lost' && isOwnProcess(commit.processId, commit.processName)) {
      // In a container another program of ours is known by its name alone, and this one is to be told.
      if (!commit.changes.some(isTrace)) return;
    }
    this.#changes.add(commit);
    const change = this.#changes.kept.at(-1);
    if (commit === 'lost' || !change) return;
    if (commit.changes.some((one) => isTrace(one) && one.verb === 'added')) {
      const { pid, program } = change;
      this.#context.logger.info({ pid, program }, 'A live trace was begun on this node');
    }
  }

  /** Without a listener the agent does its work all the same. */
  #attempt<T>(what: string, listen: () => T): T | undefined {
    try {
      return listen();
    } catch (error) {
      this.#unheard.push(`it is not known ${what}: ${errorText(error)}`);
      this.#context.logger.warn({ err: error }, `Not listening to ${what}: explanations will know less`);
      return undefined;
    }
  }
}

const isTrace = ({ object, table }: NftCommit['changes'][number]) => object === 'table' && table === TRACE_TABLE;
