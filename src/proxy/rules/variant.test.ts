import { describe, expect, it } from 'vitest';
import { FakeIptables } from '../../../test/fakes/fake-iptables.ts';
import { NodeplaneError } from '../../core/index.ts';
import type { Exec } from '../../sys/index.ts';
import { type IptablesVariant, iptablesTool, whyIptablesMissing } from './iptables-tool.ts';
import { detectVariant } from './variant.ts';

/** A machine whose `iptables` is of variant `standard`; the programs in `faults` are not there or end with a status. */
function machine(
  faults: readonly (readonly [program: RegExp, fault: 'absent' | number])[],
  standard?: IptablesVariant,
) {
  const iptables = new FakeIptables(standard && { standard });
  iptables.instead = (command) => {
    const fault = faults.find(([program]) => program.test(command))?.[1];
    if (fault === 'absent') throw new NodeplaneError('ERR_EXEC', `Cannot run ${command.split(' ')[0]}`);
    return fault === undefined ? undefined : { status: fault, stderr: 'broken' };
  };
  return iptables;
}

const HINT = '*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n';
const SERVICES = '*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT\n';
/** Ends with status 1. */
const BROKEN = 1;

describe('detectVariant', () => {
  it.each([
    ['the hint wins over rules and default', HINT, SERVICES, 'legacy', 'nft', true],
    ['rules win over the default', '', SERVICES, 'nft', 'legacy', false],
    ['the default decides on a fresh node', '', '', 'nft', 'nft', false],
    ['the default decides on a fresh node', '', '', 'legacy', 'legacy', false],
    ['what works', BROKEN, '', 'nft', 'legacy', false],
    ['what works', '', BROKEN, 'legacy', 'nft', false],
  ] as const)('%s: nft %j, legacy %j, default %s', async (_, nft, legacy, standard, variant, otherHoldsServices) => {
    const held = { nft, legacy };
    const broken = (['nft', 'legacy'] as const).filter((each) => held[each] === BROKEN);
    const iptables = machine(
      broken.map((each) => [new RegExp(`${each}-save`), BROKEN]),
      standard,
    );
    for (const each of ['nft', 'legacy'] as const) {
      if (held[each] !== BROKEN) iptables.restoreAsOther('IPv4', each, held[each]);
    }
    expect(await detectVariant('IPv4', iptables.exec)).toMatchObject({ variant, otherHoldsServices });
  });

  it('takes a version before 1.8, which does not name its variant, for legacy', async () => {
    const { exec } = machine([]);
    const old: Exec = async (program, args, options) =>
      args[0] === '--version' ? { status: 0, stdout: 'iptables v1.6.2', stderr: '' } : exec(program, args, options);
    expect(await detectVariant('IPv4', old)).toMatchObject({ variant: 'legacy', otherHoldsServices: false });
  });

  it('obeys a choice that works and refuses one that does not', async () => {
    const working = machine([]);
    working.restoreAsOther('IPv6', 'nft', HINT);
    expect(await detectVariant('IPv6', working.exec, 'legacy')).toMatchObject({ variant: 'legacy' });
    const { exec } = machine([[/legacy/, 'absent']]);
    await expect(detectVariant('IPv6', exec, 'legacy')).rejects.toMatchObject({
      code: 'ERR_IPTABLES',
      message: expect.stringContaining('ip6tables-legacy-save'),
    });
  });

  it('says so when there is none', async () => {
    const { exec } = machine([[/./, 'absent']]);
    await expect(detectVariant('IPv4', exec)).rejects.toMatchObject({ code: 'ERR_IPTABLES' });
  });
});

describe('whyIptablesMissing', () => {
  it.each([
    [undefined, undefined],
    [3, 'ip6tables-legacy -S POSTROUTING -t nat ended with status 3: "broken"'],
    [4, 'ip6tables-legacy -S POSTROUTING -t nat ended with status 4: "broken"'],
    ['absent', 'Cannot run ip6tables-legacy'],
  ] as const)('answers %j with %s', async (fault, missing) => {
    const { exec, calls } = machine(fault === undefined ? [] : [[/^ip6tables-legacy /, fault]]);
    expect(await whyIptablesMissing('IPv6', 'legacy', exec)).toBe(missing);
    expect(calls).toEqual(['ip6tables-legacy -w 5 -S POSTROUTING -t nat']);
  });
});

it('tells a lock that somebody holds from whatever else may fail', async () => {
  const iptables = new FakeIptables();
  iptables.locked = true;
  const busy = {
    code: 'ERR_IPTABLES_LOCK',
    message: expect.stringMatching(/waited 5 s for the xtables lock .*held by/),
  };
  await expect(whyIptablesMissing('IPv4', 'legacy', iptables.exec)).rejects.toMatchObject(busy);
  const tool = iptablesTool('IPv4', 'legacy', iptables.exec);
  await expect(tool.restore([])).rejects.toMatchObject(busy);
  iptables.instead = () => ({ status: 4, stderr: 'Another app is currently holding the xtables lock.' });
  await expect(tool.save('nat')).rejects.toMatchObject(busy);
});
