import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentedCommands, PAGES } from '../../documents/commands.ts';
import { removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { createDocumentedNode, type DocumentedNode } from './documented-node.ts';
import { type How, howToRun, STAGES, type Stage } from './how-run.ts';

// Every command that README.md and docs/ name is run on a node that works, or how-run.ts says why not. That it is one at all,
// with such flags, is looked at in src/docs-commands.test.ts.

const LONG_MS = patient(600_000);
const FLAGS: Readonly<Record<Stage, readonly string[] | undefined>> = {
  iptables: ['--proxy-mode', 'iptables', '--routes', 'wireguard'],
  nftables: ['--proxy-mode', 'nftables', '--routes', 'vxlan'],
  stopped: undefined,
  cleanup: undefined,
};
const commands = PAGES.flatMap(documentedCommands).map(({ place, text }) => ({ place, text, how: howToRun(text) }));

/** Each line once, with the first place that has it. */
function linesOf(stage: Stage): { readonly place: string; readonly how: How & { readonly kind: 'run' } }[] {
  const lines = new Map<string, { place: string; how: How & { readonly kind: 'run' } }>();
  for (const { place, how } of commands) {
    if (how?.kind === 'run' && how.stage === stage && !lines.has(how.line)) lines.set(how.line, { place, how });
  }
  return [...lines.values()];
}

let node: DocumentedNode;
beforeAll(async () => {
  node = await createDocumentedNode();
}, LONG_MS);
afterAll(async () => {
  await node?.end();
  removeAll();
});

it('knows of each command how it is run, or why it is not', () => {
  expect(commands.filter(({ how }) => how === undefined)).toEqual([]);
  expect(commands.filter(({ how }) => how?.kind === 'run').length).toBeGreaterThan(120);
});

describe.each(STAGES)('stage %s', (stage) => {
  it(
    'each command ends as it is documented to',
    async () => {
      const flags = FLAGS[stage];
      if (flags) await node.start(...flags);
      const wrong: string[] = [];
      for (const { place, how } of linesOf(stage)) {
        const { status, stdout, stderr } = await node.shell(how.line);
        const { exits, saying = /^/ } = how.may;
        const isRight = exits.includes(status ?? -1) && saying.test(stderr) && !/unknown|usage/i.test(stderr);
        if (!isRight)
          wrong.push(`${place}: ${how.line}\n  ended with ${status}: ${stderr.trim() || stdout.slice(-300)}`);
      }
      await node.stop();
      expect(wrong.join('\n')).toBe('');
      expect(linesOf(stage).length).toBeGreaterThan(2);
    },
    LONG_MS,
  );
});
