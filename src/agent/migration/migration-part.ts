import { inBackground, type Timer } from '../../core/index.ts';
import { MIGRATION_ANNOTATION, nodeNamed, type ObjectEvent, type Resource } from '../../kube/index.ts';
import type { Part, PartContext } from '../part.ts';
import type { FoundOnNode } from './found.ts';
import { type MigrationNote, nextNote, noteText, readNote } from './note.ts';

/** What it needs of what every part is given. */
export interface MigrationContext {
  readonly config: Pick<PartContext['config'], 'nodeName'>;
  readonly clock: PartContext['clock'];
  readonly logger: PartContext['logger'];
  readonly announcer: Pick<PartContext['announcer'], 'want'>;
}

/** Looking costs some programs, and what is left goes when people do something about it. */
const FIRST_LOOK_AGAIN_MS = 2000;
const LONGEST_LOOK_AGAIN_MS = 300_000;

/**
 * Says in an annotation of the own Node where this node stands on its way from another network: what was here when the agent
 * began, and whether it is gone. What is found in the kernel decides, so that an agent that is killed on the way goes on with it.
 */
export class MigrationPart implements Part {
  readonly resources: readonly Resource[];
  readonly #context: MigrationContext;
  readonly #look: () => Promise<FoundOnNode>;
  /** Undefined until the first look. */
  #found: FoundOnNode | undefined;
  /** What of others was here at the first look, which the agent itself may have removed since. */
  #first: FoundOnNode | undefined;
  #note: MigrationNote | undefined;
  #isNodeKnown = false;
  #againMs = FIRST_LOOK_AGAIN_MS;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(context: MigrationContext, look: () => Promise<FoundOnNode>) {
    this.#context = context;
    this.#look = look;
    this.resources = [nodeNamed(context.config.nodeName)];
  }

  /** Resolves when it is known what was here: the parts that remove it start afterwards. */
  async start(): Promise<void> {
    await this.#lookNow();
    this.#first = this.#found;
  }

  changed({ type, object }: ObjectEvent): void {
    if (object.kind !== 'Node' || object.metadata.name !== this.#context.config.nodeName || type === 'deleted') return;
    const said = readNote(object.metadata.annotations?.[MIGRATION_ANNOTATION]);
    // After that it is us who write it.
    if (!this.#isNodeKnown) this.#note = said;
    if (!this.#isNodeKnown && this.#first) this.#tell(this.#first);
    this.#isNodeKnown = true;
    this.#update();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #lookNow(): Promise<void> {
    try {
      this.#found = await this.#look();
    } catch (error) {
      const { logger } = this.#context;
      logger.warn({ err: error }, 'It cannot be told what another network has left here');
    }
    if (this.#isStopped) return;
    this.#update();
  }

  #update(): void {
    if (this.#found && this.#isNodeKnown) this.#tell(this.#found);
    const isOver = this.#found !== undefined && this.#isNodeKnown && this.#found.theirs.length === 0;
    this.#timer?.cancel();
    if (isOver) return;
    this.#timer = this.#context.clock.setTimer(() => {
      this.#againMs = Math.min(2 * this.#againMs, LONGEST_LOOK_AGAIN_MS);
      inBackground('migration', () => this.#lookNow());
    }, this.#againMs);
  }

  #tell(found: FoundOnNode): void {
    const { clock, logger } = this.#context;
    const note = nextNote(this.#note, found, clock.wallTime());
    if (note && (note.step !== this.#note?.step || note.since !== this.#note.since)) {
      logger.info(
        { from: note.from, left: found.theirs.map(({ sign }) => sign) },
        note.step === 'taken-over' ? 'Nothing is left of what was here before' : 'Taking over from what is here',
      );
    }
    this.#note = note;
    if (note) this.#context.announcer.want('migration', { [MIGRATION_ANNOTATION]: noteText(note) });
  }
}
