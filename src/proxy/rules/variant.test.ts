import { describe, expect, it } from 'vitest';
import { NodeplaneError } from '../../core/index.ts';
import type { Exec } from '../../sys/index.ts';
import { iptablesTool, whyIptablesMissing } from './iptables-tool.ts';
import { detectVariant } from './variant.ts';

/** Programs by command line; the output when there is one, an exit status when it is a number. */
function machine(programs: Record<string, string | number>): Exec {
  return async (program, args) => {
    const answer = programs[[program, ...args].join(' ')];
    if (answer === undefined) throw new NodeplaneError('ERR_EXEC', `Cannot run ${program}`);
    return typeof answer === 'number'
      ? { status: answer, stdout: '', stderr: 'broken' }
      : { status: 0, stdout: answer, stderr: '' };
  };
}

const hint = '*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n';
const services = '*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT\n';
const nft = 'iptables v1.8.9 (nf_tables)';
const legacy = 'iptables v1.8.9 (legacy)';

describe('detectVariant', () => {
  it.each([
    ['the hint wins over rules and default', hint, services, legacy, 'nft', true],
    ['rules win over the default', '', services, nft, 'legacy', false],
    ['the default decides on a fresh node', '', '', nft, 'nft', false],
    ['the default decides on a fresh node', '', '', legacy, 'legacy', false],
    ['a version before 1.8 is legacy', '', '', 'iptables v1.6.2', 'legacy', false],
    ['what works', 1, '', nft, 'legacy', false],
    ['what works', '', 1, legacy, 'nft', false],
  ])('%s: nft %j, legacy %j, default %s', async (_, nftSave, legacySave, version, variant, otherHoldsServices) => {
    const exec = machine({
      'iptables-nft-save': nftSave,
      'iptables-legacy-save': legacySave,
      'iptables --version': version,
    });
    expect(await detectVariant('IPv4', exec)).toMatchObject({ variant, otherHoldsServices });
  });

  it('obeys a choice that works and refuses one that does not', async () => {
    const exec = machine({ 'ip6tables-nft-save': hint, 'ip6tables-legacy-save': '' });
    expect(await detectVariant('IPv6', exec, 'legacy')).toMatchObject({ variant: 'legacy' });
    await expect(detectVariant('IPv6', machine({ 'ip6tables-nft-save': '' }), 'legacy')).rejects.toMatchObject({
      code: 'ERR_IPTABLES',
      message: expect.stringContaining('ip6tables-legacy-save'),
    });
  });

  it('says so when there is none', async () => {
    await expect(detectVariant('IPv4', machine({}))).rejects.toMatchObject({ code: 'ERR_IPTABLES' });
  });
});

describe('whyIptablesMissing', () => {
  const command = 'ip6tables-legacy -w 5 -S POSTROUTING -t nat';

  it.each([
    ['', undefined],
    [3, 'ip6tables-legacy -S POSTROUTING -t nat ended with status 3: "broken"'],
    [4, 'ip6tables-legacy -S POSTROUTING -t nat ended with status 4: "broken"'],
    [undefined, 'Cannot run ip6tables-legacy'],
  ])('answers %j with %s', async (answer, missing) => {
    const exec = machine(answer === undefined ? {} : { [command]: answer });
    expect(await whyIptablesMissing('IPv6', 'legacy', exec)).toBe(missing);
  });
});

it('tells a lock that somebody holds from whatever else may fail', async () => {
  const stderr = `Can't lock /run/xtables.lock: Resource temporarily unavailable
Another app is currently holding the xtables lock. Stopped waiting after 5s.\n`;
  const exec: Exec = async () => ({ status: 4, stdout: '', stderr });
  const busy = {
    code: 'ERR_IPTABLES_LOCK',
    message: expect.stringMatching(/waited 5 s for the xtables lock .*held by/),
  };
  await expect(whyIptablesMissing('IPv4', 'legacy', exec)).rejects.toMatchObject(busy);
  await expect(iptablesTool('IPv4', 'legacy', exec).save('nat')).rejects.toMatchObject(busy);
});
