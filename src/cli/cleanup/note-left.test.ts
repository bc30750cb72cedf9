import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { apiNode, FakeApiServer } from '../../../test/fakes/api-server/index.ts';
import { noteLeft } from '../../agent/index.ts';
import { MIGRATION_ANNOTATION } from '../../kube/index.ts';
import { configOfNode } from './config-of-node.ts';

const NOTE = { from: ['kube-proxy iptables'], step: 'taken-over', since: '2026-01-01T00:00:00Z' } as const;
const OTHERS = { 'example.com/note': 'of somebody else' };

let folder: string;
let server: FakeApiServer;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-note-'));
  server = new FakeApiServer();
  await server.start();
  server.writeKubeconfig(join(folder, 'kubeconfig'));
});
afterEach(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

function apply(annotation?: string): void {
  const node = apiNode('node-1');
  const annotations = { ...OTHERS, ...(annotation !== undefined && { [MIGRATION_ANNOTATION]: annotation }) };
  server.apply({ ...node, metadata: { ...node.metadata, annotations } });
}
const config = (name = 'node-1') => configOfNode({ kubeconfig: join(folder, 'kubeconfig'), hostnameOverride: name })!;
const annotations = () => server.objects('Node')[0]!.metadata.annotations ?? {};
const said = () => JSON.parse(annotations()[MIGRATION_ANNOTATION]!);

it('says that the node has gone back to kube-proxy, since when, and from what it had come', async () => {
  apply(JSON.stringify(NOTE));
  expect(await noteLeft(config(), true)).toBe(
    'Node "node-1": annotation nodeplane.io/migration says that it has gone back',
  );
  const note = said();
  expect(note).toMatchObject({ from: NOTE.from, step: 'gone-back' });
  expect(Date.parse(note.since)).toBeGreaterThan(Date.parse(NOTE.since));
  expect(annotations()).toMatchObject(OTHERS);
  // Again: it has gone back when it did.
  await noteLeft(config(), true);
  expect(said()).toEqual(note);
});

it('goes where no proxy is left, with nothing else', async () => {
  apply(JSON.stringify(NOTE));
  await noteLeft(config(), false);
  expect(annotations()).toEqual(OTHERS);
});

it('is not written to a Node that does not have it', async () => {
  apply();
  expect(await noteLeft(config(), true)).toContain('has no annotation');
  expect(server.count('patch', 'nodes')).toBe(0);
});

it('that cannot be written is told with the remedy', async () => {
  apply(JSON.stringify(NOTE));
  const remedy = /^Cannot bring annotation .* up to date: .*kubectl annotate node \S+ nodeplane\.io\/migration-$/;
  await expect(noteLeft(config('node-2'), true)).rejects.toMatchObject({
    code: 'ERR_CLEANUP',
    message: expect.stringMatching(remedy),
  });
  server.misbehave.rules = [
    { apiGroups: ['', 'discovery.k8s.io', 'networking.k8s.io'], resources: ['*'], verbs: ['get', 'list', 'watch'] },
  ];
  await expect(noteLeft(config(), true)).rejects.toMatchObject({
    code: 'ERR_CLEANUP',
    message: expect.stringMatching(remedy),
  });
  expect(said()).toEqual(NOTE);
  await server.stop();
  await expect(noteLeft(config(), true)).rejects.toMatchObject({
    code: 'ERR_CLEANUP',
    message: expect.stringMatching(remedy),
  });
});
