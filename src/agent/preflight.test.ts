import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { Exec } from '../sys/index.ts';
import { preflight } from './preflight.ts';

const logger = pino({ level: 'silent' });

/** Programs that exist and save nothing; those in `failing` end with status 1. */
function programs(failing: RegExp): Exec {
  return async (program, args) => {
    const status = failing.test([program, ...args].join(' ')) ? 1 : 0;
    return { status, stdout: program.includes('save') ? '' : `${program} v1.8.9 (nf_tables)`, stderr: '' };
  };
}

it('serves the families whose iptables does NAT', async () => {
  expect([...(await preflight('auto', programs(/^$/), logger, true)).keys()]).toEqual(['IPv4', 'IPv6']);
  expect([...(await preflight('auto', programs(/^ip6tables-nft .*-t nat/), logger, true)).keys()]).toEqual(['IPv4']);
  expect([...(await preflight('auto', programs(/^iptables/), logger, true)).keys()]).toEqual(['IPv6']);
});

it('refuses a machine where none does, a variant that is not there, and a process without the capability', async () => {
  await expect(preflight('auto', programs(/^$/), logger, false)).rejects.toThrow('CAP_NET_ADMIN');
  await expect(preflight('auto', programs(/./), logger, true)).rejects.toMatchObject({ code: 'ERR_IPTABLES' });
  await expect(preflight('legacy', programs(/legacy/), logger, true)).rejects.toThrow(/iptables variant "legacy"/);
});
