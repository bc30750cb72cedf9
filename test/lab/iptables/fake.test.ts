import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { Exec } from '../../../src/sys/index.ts';
import { FakeIptables } from '../../fakes/fake-iptables.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { execIn, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

const own = fc.constantFrom('A', 'B', 'C');
const anyChain = fc.oneof({ weight: 6, arbitrary: own }, fc.constantFrom('OUTPUT', 'NOPE'));
const rule = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('-p tcp -j ACCEPT', '-s 10.0.0.0/8 -j RETURN', '-p udp') },
  { weight: 5, arbitrary: fc.tuple(fc.constantFrom('-j', '-g'), anyChain).map(([how, target]) => `${how} ${target}`) },
  // iptables takes it, the kernel makes a file of that name and does not.
  { weight: 1, arbitrary: fc.constant('-m recent --set --name a/b --mask 255.255.255.255 --rsource') },
  { weight: 1, arbitrary: fc.constant('--bogus') },
);
const line = fc.oneof(
  { weight: 4, arbitrary: own.map((chain) => `:${chain} - [0:0]`) },
  { weight: 1, arbitrary: fc.constantFrom(':OUTPUT ACCEPT [0:0]', ':OUTPUT DROP [0:0]', ':OUTPUT - [0:0]') },
  { weight: 6, arbitrary: fc.tuple(anyChain, rule).map(([chain, text]) => `-A ${chain} ${text}`) },
  { weight: 2, arbitrary: fc.tuple(anyChain, rule).map(([chain, text]) => `-I ${chain} ${text}`) },
  { weight: 1, arbitrary: fc.tuple(anyChain, fc.integer({ min: 1, max: 3 }), rule).map((of) => `-I ${of.join(' ')}`) },
  { weight: 2, arbitrary: fc.tuple(anyChain, rule).map(([chain, text]) => `-D ${chain} ${text}`) },
  { weight: 1, arbitrary: anyChain.map((chain) => `-F ${chain}`) },
  { weight: 2, arbitrary: fc.constantFrom('A', 'B', 'C', 'NOPE').map((chain) => `-X ${chain}`) },
);
const table = fc
  .tuple(fc.constantFrom('filter', 'filter', 'nat', 'nope'), fc.array(line, { maxLength: 8 }), fc.nat(15))
  .map(([name, lines, end]) => [`*${name}`, ...lines, ...(end === 0 ? [] : ['COMMIT'])].join('\n'));
/** Chains that may lead to each other, and what random lines do to them. */
const PRELUDE = '*filter\n:A - [0:0]\n:B - [0:0]\n-A A -j B\n-A OUTPUT -j A\nCOMMIT\n';
const transaction = fc.array(table, { minLength: 1, maxLength: 2 }).map((tables) => `${tables.join('\n')}\n`);

/** Status and the first line named; all of what is said, but for the words of a parser. */
async function outcome(exec: Exec, program: string, input: string): Promise<string> {
  const { status, stderr } = await exec(program, ['-w', '5', '--noflush'], { input });
  const [said] = /.*\bline:? \d+.*/.exec(stderr) ?? [stderr];
  return status === 2 ? `2 ${/line:? (\d+)/.exec(said)?.[1]}` : `${status} ${said}`;
}

/** What iptables-save prints, without remarks. */
async function dump(exec: Exec, program: string): Promise<string> {
  const texts: string[] = [];
  for (const name of ['filter', 'nat']) texts.push((await exec(program, ['-t', name])).stdout);
  return texts.join('').replace(/^#.*\n/gm, '');
}

describe.each(['nft', 'legacy'] as const)('the fake iptables, variant %s', (variant) => {
  const restore = `iptables-${variant}-restore`;
  const save = `iptables-${variant}-save`;

  it('takes and refuses what the real one does, and prints the same afterwards', async () => {
    const real = execIn(createNamespace(`fake-${variant}`));
    await fc.assert(
      fc.asyncProperty(fc.array(transaction, { minLength: 1, maxLength: 5 }), async (transactions) => {
        const fake = new FakeIptables();
        fake.refuse = (text) =>
          text.includes('--bogus') ? 'program' : /^-[AI].*a\/b/.test(text) ? 'kernel' : undefined;
        await real(restore, ['-w', '5'], { input: '*filter\nCOMMIT\n*nat\nCOMMIT\n' });
        await real(restore, ['-w', '5', '--noflush'], {
          input: '*filter\n:OUTPUT ACCEPT\nCOMMIT\n*nat\n:OUTPUT ACCEPT\nCOMMIT\n',
        });
        for (const input of [PRELUDE, ...transactions]) {
          expect(await outcome(fake.exec, restore, input)).toBe(await outcome(real, restore, input));
          expect(await dump(fake.exec, save)).toBe(await dump(real, save));
        }
      }),
      { numRuns: 60 },
    );
  }, 180_000);

  it('says what the real one does where nothing was made yet, and of what is not there', async () => {
    const real = execIn(createNamespace(`fresh-${variant}`));
    const fake = new FakeIptables();
    const status = async (exec: Exec, program: string, args: string[]) => {
      const result = await exec(program, args);
      return [result.status, result.stdout.replace(/^#.*\n/gm, '')];
    };
    for (const [program, ...args] of [
      [save],
      [save, '-t', 'nat'],
      [save],
      [save, '-t', 'nope'],
      [`iptables-${variant}`, '-w', '5', '-S', 'POSTROUTING', '-t', 'nat'],
      [`iptables-${variant}`, '-w', '5', '-S', 'NOPE', '-t', 'nat'],
    ]) {
      expect(await status(fake.exec, program!, args)).toEqual(await status(real, program!, args));
    }
  });
});
