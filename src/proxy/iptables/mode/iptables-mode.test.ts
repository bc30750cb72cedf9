import { pino } from 'pino';
import { expect, it } from 'vitest';
import { FakeIptables } from '../../../../test/fakes/fake-iptables.ts';
import type { Exec } from '../../../sys/index.ts';
import { iptablesMode } from './iptables-mode.ts';

const lines: Record<string, unknown>[] = [];
const logger = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });

/** Programs that exist and save nothing; those in `failing` end with status 1. */
function programs(failing: RegExp): Exec {
  const iptables = new FakeIptables();
  iptables.instead = (command) => (failing.test(command) ? { status: 1, stderr: '' } : undefined);
  return iptables.exec;
}

const prepare = (failing: RegExp, iptablesVariant: 'auto' | 'legacy' = 'auto') =>
  iptablesMode.prepare({ iptablesVariant }, { families: ['IPv4', 'IPv6'], exec: programs(failing), logger });

it('serves the families whose iptables does NAT', async () => {
  expect((await prepare(/^$/)).families).toEqual(['IPv4', 'IPv6']);
  expect((await prepare(/^ip6tables-nft .*-t nat/)).families).toEqual(['IPv4']);
  expect((await prepare(/^iptables/)).families).toEqual(['IPv6']);
});

it('says which variant of iptables it uses, and why', async () => {
  lines.length = 0;
  await prepare(/^$/, 'legacy');
  expect(lines).toMatchObject([
    { family: 'IPv4', variant: 'legacy', reason: 'it was asked for' },
    { family: 'IPv6', variant: 'legacy', reason: 'it was asked for' },
  ]);
});

it('refuses a machine where none does, and a variant that is not there', async () => {
  await expect(prepare(/./)).rejects.toMatchObject({ code: 'ERR_IPTABLES' });
  await expect(prepare(/legacy/, 'legacy')).rejects.toThrow(/iptables variant "legacy"/);
});
