import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { explainHere, showDiff, showRoutes, showServices, showStatus, showTrace } from '../../agent/index.ts';
import type { ErrorCode } from '../../core/index.ts';

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodeplane-codes-'));
});

afterAll(() => rmSync(directory, { recursive: true }));

/** Nobody listens there. */
const ADDRESS = '127.0.0.1:9';

const explain = (destination: string) =>
  explainHere({
    question: { destination },
    json: false,
    verbose: false,
    unicode: false,
    directory,
  });

const trace = (destination: string) =>
  showTrace({
    source: 'any',
    destination,
    protocol: 'tcp',
    live: '1s',
    probe: false,
    payload: undefined,
    json: false,
    address: ADDRESS,
  });

it.each<[command: string, run: () => Promise<unknown>, code: ErrorCode]>([
  ['status', () => showStatus({ address: ADDRESS, json: false }), 'ERR_STATUS_AGENT'],
  ['services', () => showServices({ address: ADDRESS, json: false, name: '', page: 1 }), 'ERR_STATUS_AGENT'],
  ['routes', () => showRoutes({ agent: ADDRESS, json: false }), 'ERR_ROUTES_AGENT'],
  ['trace', () => trace('default/web'), 'ERR_STATUS_AGENT'],
  ['trace of no question', () => trace('web'), 'ERR_CONFIG'],
  ['diff', () => showDiff({ directory, repair: false, json: false, progress: () => {} }), 'ERR_DIFF'],
  ['explain', () => explain('svc/default/web'), 'ERR_EXPLAIN_AGENT'],
  ['explain of no question', () => explain('web'), 'ERR_EXPLAIN_QUESTION'],
])('without an agent %s ends with a code of docs/errors.md', async (_, run, code) => {
  const outcome = await run().catch((error: unknown) => error);
  // What it throws, reportFailure writes like that.
  const { stderr } = outcome as { stderr?: string };
  if (stderr === undefined) expect(outcome).toMatchObject({ code });
  else expect(stderr).toMatch(new RegExp(` \\(${code}\\)\\n$`));
});
