import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { SourceListener } from '../../../test/fakes/source-listener.ts';
import { type Clock, systemClock } from '../../core/index.ts';
import { proxyResources } from '../../proxy/index.ts';

import { ManifestSource } from './manifest-source.ts';

let parent: string;
let folder: string;
const running: ManifestSource[] = [];

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'nodeplane-manifests-'));
  folder = join(parent, 'manifests');
  mkdirSync(folder);
});

afterEach(async () => {
  for (const source of running.splice(0)) await source.stop();
  rmSync(parent, { recursive: true, force: true });
});

async function follow(clock: Clock, debug?: (message: string) => void): Promise<SourceListener> {
  const source = new ManifestSource({
    folder,
    resources: proxyResources('node-1', ''),
    clock,
    ...(debug && { debug }),
  });
  running.push(source);
  const listener = new SourceListener();
  await source.start(listener);
  return listener;
}

function service(name: string, port = 80): string {
  return `---\napiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec:\n  clusterIP: 10.96.0.${name.charCodeAt(0)}\n  ports:\n  - port: ${port}\n`;
}

let writes = 0;

/** Writes a file; its time of change is never one that a file had before, however fast the test runs. */
function write(name: string, text: string): void {
  const path = join(folder, name);
  writeFileSync(path, text);
  utimesSync(path, ++writes, writes);
}

/** Longer than the time between two looks that no event asks for. */
const A_LOOK_MS = 10_000;

describe('at the start', () => {
  it('tells all manifests of the folder, then that it is synced', async () => {
    write('b.yaml', service('b') + service('a'));
    write('c.yml', service('c'));
    write('d.json', JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'd' } }));
    const listener = await follow(new FakeClock());
    expect(listener.take()).toEqual(['added d', 'added a:80', 'added b:80', 'added c:80', 'synced']);
  });

  it('leaves out other files, hidden ones and editor backups', async () => {
    for (const name of ['.a.yaml', '.#a.yaml', '#a.yaml#', 'a.yaml~', 'a.yaml.bak', '.a.yaml.swp', 'a.txt', 'yaml']) {
      write(name, service('hidden'));
    }
    mkdirSync(join(folder, '..2026_11_23'));
    writeFileSync(join(folder, '..2026_11_23', 'a.yaml'), service('hidden'));
    mkdirSync(join(folder, 'notes'));
    writeFileSync(join(folder, 'notes', 'a.txt'), '');
    expect((await follow(new FakeClock())).take()).toEqual(['synced']);
  });

  it('tells problems before synced and the good files all the same', async () => {
    write('bad.yaml', `${service('a')}---\nkind: [\n`);
    write('good.yaml', service('b'));
    const listener = await follow(new FakeClock());
    expect(listener.take()).toEqual(['added a:80', 'added b:80', 'problems bad.yaml:11', 'synced']);
  });

  it('says at debug level what kinds it does not read', async () => {
    write('a.yaml', `${service('a')}---\nkind: Deployment\nmetadata: {name: d}\n`);
    const messages: string[] = [];
    const listener = await follow(new FakeClock(), (message) => messages.push(message));
    expect(listener.take()).toEqual(['added a:80', 'synced']);
    expect(messages).toEqual(['a.yaml: Deployment d is of a kind that is not read']);
  });

  it.each(['missing', 'file.yaml'])('rejects a folder that is none (%s)', async (name) => {
    write('file.yaml', service('a'));
    folder = join(folder, name);
    await expect(follow(new FakeClock())).rejects.toMatchObject({
      code: 'ERR_CONFIG',
      message: `Cannot read the folder of manifests "${folder}"`,
    });
  });
});

describe('mistakes between objects', () => {
  const slice = (of: string) =>
    `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s, labels: {kubernetes.io/service-name: ${of}}}\naddressType: IPv4\nendpoints: []\nports: []\n`;

  it('are told before synced, and later when files have rested for a second', async () => {
    write('a.yaml', service('x'));
    write('s.yaml', slice('other'));
    const clock = new FakeClock();
    const listener = await follow(clock);
    expect(listener.take()).toEqual(['added x:80', 'added s', 'problems s.yaml', 'synced']);
    write('s.yaml', slice('x'));
    const at = new Map<string, number>();
    for (let ms = 0; ms < 2 * A_LOOK_MS; ms += 100) {
      await clock.advance(100);
      for (const told of listener.take()) at.set(told, ms);
    }
    expect([...at.keys()]).toEqual(['updated s', 'problems']);
    expect((at.get('problems') ?? 0) - (at.get('updated s') ?? 0)).toBe(1000);
  });
});

describe('after the start', () => {
  it('tells what an edit changed', async () => {
    write('a.yaml', service('x') + service('y'));
    const clock = new FakeClock();
    const listener = await follow(clock);
    listener.take();
    write('a.yaml', service('y', 81) + service('z'));
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual(['deleted x:80', 'updated y:81', 'added z:80']);
    unlinkSync(join(folder, 'a.yaml'));
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual(['deleted y:81', 'deleted z:80']);
  });

  it('keeps the last good state of a broken file and says when it is mended', async () => {
    write('a.yaml', service('x'));
    const clock = new FakeClock();
    const listener = await follow(clock);
    write('a.yaml', service('x', 81) + service('y', 0));
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual(['added x:80', 'synced', 'updated x:81', 'problems a.yaml:16']);
    expect(listener.present).toEqual([
      {
        where: 'a.yaml:16',
        object: 'Service default/y',
        field: 'spec.ports[0].port',
        message: 'Expected a port number from 1 to 65535, found 0',
      },
    ]);
    await clock.advance(5 * A_LOOK_MS);
    expect(listener.take()).toEqual([]);
    write('a.yaml', service('x', 81));
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual(['problems']);
  });

  it('tells what is probably not meant once for each content of the file, with the object in force', async () => {
    const text = service('x').replace('port:', 'targetport: 8080\n    port:');
    write('a.yaml', text);
    const clock = new FakeClock();
    const listener = await follow(clock);
    expect(listener.take()).toEqual(['added x:80', 'problems a.yaml:8', 'synced']);
    expect(listener.present).toMatchObject([{ field: 'spec.ports[0].targetport', inForce: true }]);
    write('a.yaml', text);
    await clock.advance(3 * A_LOOK_MS);
    expect(listener.take()).toEqual([]);
    write('a.yaml', service('x'));
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual(['problems']);
  });

  it('reports a duplicate of another file and takes it over when the other lets go', async () => {
    write('b.yaml', service('x'));
    const clock = new FakeClock();
    const listener = await follow(clock);
    write('a.yaml', service('x', 81));
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual(['added x:80', 'synced', 'problems a.yaml:2']);
    write('b.yaml', '# nothing');
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual(['updated x:81', 'problems']);
  });

  it('tells nothing when a file is renamed', async () => {
    write('b.yaml', service('x'));
    const clock = new FakeClock();
    const listener = await follow(clock);
    listener.take();
    renameSync(join(folder, 'b.yaml'), join(folder, 'a.yaml'));
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual([]);
  });

  it('believes an empty file only after a while, since writing in place truncates first', async () => {
    write('a.yaml', service('x'));
    write('b.yaml', service('y'));
    const clock = new FakeClock();
    const listener = await follow(clock);
    listener.take();
    write('a.yaml', '');
    write('b.yaml', '');
    await clock.advance(A_LOOK_MS, 'held');
    expect(listener.take()).toEqual([]);
    write('a.yaml', service('x', 81));
    await clock.advance(499, 'held');
    expect(listener.take()).toEqual([]);
    await clock.advance(1, 'held');
    expect(listener.take()).toEqual(['deleted y:80', 'updated x:81']);
    await clock.advance(A_LOOK_MS, 'held');
    expect(listener.take()).toEqual([]);
  });

  it('keeps everything while the folder is away', async () => {
    write('a.yaml', service('x') + service('y'));
    const clock = new FakeClock();
    const listener = await follow(clock);
    listener.take();
    rmSync(folder, { recursive: true });
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual([`problems ${folder}`]);
    mkdirSync(folder);
    write('a.yaml', service('x'));
    await clock.advance(1_000);
    expect(listener.take()).toEqual(['deleted y:80', 'problems']);
  });

  it('reports a link to nothing and keeps what the file held', async () => {
    writeFileSync(join(parent, 'target'), service('x'));
    symlinkSync('../target', join(folder, 'a.yaml'));
    const clock = new FakeClock();
    const listener = await follow(clock);
    unlinkSync(join(parent, 'target'));
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual(['added x:80', 'synced', 'problems a.yaml']);
    expect(listener.present[0]?.message).toBe('Cannot be read: it is a symbolic link to nothing');
    writeFileSync(join(parent, 'target'), service('x', 81));
    await clock.advance(A_LOOK_MS);
    expect(listener.take()).toEqual(['updated x:81', 'problems']);
  });

  it('tells nothing more once stopped', async () => {
    write('a.yaml', service('x'));
    const clock = new FakeClock();
    const listener = await follow(clock);
    listener.take();
    await running[0]!.stop();
    write('a.yaml', service('x', 81));
    await clock.advance(5 * A_LOOK_MS);
    expect(listener.take()).toEqual([]);
  });
});

describe('with inotify', () => {
  /** Far less than the time until the folder is looked at without an event. */
  const soon = { timeout: 3_000, interval: 5 };

  it('follows writes in place, appends, renames and deletions', async () => {
    write('a.yaml', service('x'));
    const listener = await follow(systemClock);
    expect(listener.take()).toEqual(['added x:80', 'synced']);
    writeFileSync(join(folder, 'a.yaml'), service('x', 81));
    await expect.poll(() => listener.take(), soon).toEqual(['updated x:81']);
    appendFileSync(join(folder, 'a.yaml'), service('y'));
    await expect.poll(() => listener.take(), soon).toEqual(['added y:80']);
    writeFileSync(join(folder, '.a.yaml.tmp'), service('x', 82) + service('y'));
    renameSync(join(folder, '.a.yaml.tmp'), join(folder, 'a.yaml'));
    await expect.poll(() => listener.take(), soon).toEqual(['updated x:82']);
    unlinkSync(join(folder, 'a.yaml'));
    await expect.poll(() => listener.take(), soon).toEqual(['deleted x:82', 'deleted y:80']);
  });

  it('notices an edit that leaves size and time of the file as they were', async () => {
    const path = join(folder, 'a.yaml');
    writeFileSync(path, service('x', 80));
    utimesSync(path, 1, 1);
    const listener = await follow(systemClock);
    listener.take();
    writeFileSync(path, service('x', 81));
    utimesSync(path, 1, 1);
    await expect.poll(() => listener.take(), soon).toEqual(['updated x:81']);
  });

  it('takes a move between two files as one change', async () => {
    write('a.yaml', service('x') + service('y'));
    write('b.yaml', service('z'));
    const listener = await follow(systemClock);
    listener.take();
    write('a.yaml', service('y'));
    write('b.yaml', service('z', 81) + service('x'));
    await expect.poll(() => listener.take(), soon).toEqual(['updated z:81']);
  });

  it('follows the swap of a mounted ConfigMap', async () => {
    // As the kubelet does it: files link to ..data, which links to a folder of this moment and is replaced by a rename.
    const publish = (moment: string, text: string) => {
      mkdirSync(join(folder, moment));
      writeFileSync(join(folder, moment, 'a.yaml'), text);
      symlinkSync(moment, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    };
    publish('..1', service('x', 80));
    symlinkSync('..data/a.yaml', join(folder, 'a.yaml'));
    const listener = await follow(systemClock);
    expect(listener.take()).toEqual(['added x:80', 'synced']);
    publish('..2', service('x', 81));
    rmSync(join(folder, '..1'), { recursive: true });
    await expect.poll(() => listener.take(), soon).toEqual(['updated x:81']);
  });

  it('watches a folder that took the place of the first', async () => {
    write('a.yaml', service('x'));
    const listener = await follow(systemClock);
    listener.take();
    const first = folder;
    folder = join(parent, 'next');
    mkdirSync(folder);
    write('a.yaml', service('x', 81));
    rmSync(first, { recursive: true });
    renameSync(folder, first);
    folder = first;
    await expect
      .poll(() => listener.objects.get('Service default/x'), soon)
      .toMatchObject({ spec: { ports: [{ port: 81 }] } });
    listener.take();
    write('a.yaml', service('x', 82));
    await expect.poll(() => listener.take(), soon).toEqual(['updated x:82']);
  });

  it('watches a folder that was away for a while', async () => {
    const listener = await follow(systemClock);
    rmSync(folder, { recursive: true });
    await expect.poll(() => listener.present.map(({ where }) => where), soon).toEqual([folder]);
    mkdirSync(folder);
    await expect.poll(() => listener.present, soon).toEqual([]);
    listener.take();
    write('a.yaml', service('x'));
    await expect.poll(() => listener.take(), soon).toEqual(['added x:80']);
  });
});

it('after any edits that end without a fault, has told what a fresh source tells', async () => {
  const files = ['a.yaml', 'b.yaml', 'c.yaml'];
  const text = fc
    .uniqueArray(fc.record({ name: fc.constantFrom('x', 'y', 'z'), port: fc.integer({ min: 80, max: 82 }) }), {
      maxLength: 3,
      selector: ({ name }) => name,
    })
    .map((services) => `# manifest\n${services.map(({ name, port }) => service(name, port)).join('')}`);
  const broken = fc.constantFrom('kind: [', service('x', 0), service('x') + service('x'), `${service('y')}---\n- 1`);
  const edit = fc.record({
    file: fc.constantFrom(...files),
    text: fc.oneof(
      { weight: 5, arbitrary: text },
      { weight: 2, arbitrary: broken },
      { weight: 1, arbitrary: fc.constant(null) },
    ),
    looks: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { maxLength: 12 }), async (edits) => {
      for (const file of files) rmSync(join(folder, file), { force: true });
      const clock = new FakeClock();
      const listener = await follow(clock);
      for (const { file, text, looks } of edits) {
        if (text === null) rmSync(join(folder, file), { force: true });
        else write(file, text);
        if (looks) await clock.advance(A_LOOK_MS);
      }
      await clock.advance(A_LOOK_MS);
      const fresh = await follow(new FakeClock());
      for (const source of running.splice(0)) await source.stop();
      expect(listener.present.length > 0).toBe(fresh.present.length > 0);
      if (fresh.present.length === 0) expect(listener.objects).toEqual(fresh.objects);
    }),
    { numRuns: 100 },
  );
});
