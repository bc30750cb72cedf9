import { errorText } from '../../core/index.ts';

/** The way back from a change that consists of steps. */
export class UndoStack {
  readonly #steps: { readonly what: string; readonly undo: () => void | Promise<void> }[] = [];

  /** Remembers how to take a step back. Call it before the step when the step may succeed in part. */
  add(what: string, undo: () => void | Promise<void>): void {
    this.#steps.push({ what, undo });
  }

  /**
   * Takes all steps back, the last one first. One that fails does not keep the others from being taken back.
   *
   * @param warn takes every failure, in words
   */
  async run(warn: (message: string) => void): Promise<void> {
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) {
      try {
        await step.undo();
      } catch (error) {
        warn(`Cannot undo "${step.what}": ${errorText(error)}`);
      }
    }
  }
}
