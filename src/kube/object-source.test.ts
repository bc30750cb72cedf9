import { mkdirSync, mkdtempSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiSourceFixture } from '../../test/fakes/api-source-fixture.ts';
import { type SourceUnderTest, testObjectSource } from '../../test/fakes/object-source-suite.ts';
import { ManifestSource } from './manifests/manifest-source.ts';
import type { SourceProblem } from './source.ts';

for (const speaks of ['both', 'json'] as const) {
  const kind = speaks === 'json' ? 'an API server that speaks JSON' : 'an API server that speaks protobuf, too';
  testObjectSource(`${kind} as the source`, async (): Promise<SourceUnderTest> => {
    const t = await ApiSourceFixture.create(speaks);
    return {
      apply: (...objects) => t.server.apply(...objects),
      delete: (kind, key) => t.server.delete(kind, key),
      start: (resources, handler) => t.start({ resources }, handler),
      stop: () => t.source.stop(),
      close: () => t.stop(),
    };
  });
}

testObjectSource('a folder of manifests as the source', async (): Promise<SourceUnderTest> => {
  const parent = mkdtempSync(join(tmpdir(), 'nodeplane-source-'));
  const folder = join(parent, 'manifests');
  mkdirSync(folder);
  let source: ManifestSource | undefined;
  const fileOf = (kind: string, key: string) => join(folder, `${kind}-${key.replace('/', '-')}.json`);
  return {
    apply(...objects) {
      for (const object of objects) {
        const { namespace, name } = object.metadata;
        const path = fileOf(object.kind, namespace ? `${namespace}/${name}` : name);
        // As one step: half a file would be a problem for a moment.
        writeFileSync(join(parent, 'new'), JSON.stringify(object));
        renameSync(join(parent, 'new'), path);
      }
    },
    delete: (kind, key) => unlinkSync(fileOf(kind, key)),
    async start(resources, handler) {
      source = new ManifestSource({ folder, resources });
      // What is in force and probably not meant is told of manifests alone.
      const problems = (all: readonly SourceProblem[]) => handler.problems(all.filter(({ inForce }) => !inForce));
      await source.start({
        event: (event) => handler.event(event),
        synced: () => handler.synced(),
        problems,
      });
    },
    stop: async () => source?.stop(),
    async close() {
      await source?.stop();
      rmSync(parent, { recursive: true });
    },
  };
});
