import { dirname } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Spreads the files of each folder over the run. Some folders keep the processors busy, others wait for what must not come: by
 * size or time alone one sort would come after the other, and the processors be idle first and then too few.
 */
export class SpreadFiles extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const folders = new Map<string, TestSpecification[]>();
    for (const file of await super.sort(files)) {
      const key = `${file.project.name} ${dirname(file.moduleId)}`;
      folders.set(key, [...(folders.get(key) ?? []), file]);
    }
    const placed = [...folders.values()].flatMap((inFolder) =>
      inFolder.map((file, index) => ({ file, place: (index + 0.5) / inFolder.length })),
    );
    return placed.sort((a, b) => a.place - b.place).map(({ file }) => file);
  }
}
