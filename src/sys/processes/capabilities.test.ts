import { expect, it } from 'vitest';
import { capabilitiesOf, needCapability } from './capabilities.ts';

it('reads capabilities', () => {
  expect([...capabilitiesOf('Name:\tx\nCapEff:\t0000000000003000\n')]).toEqual(['NET_ADMIN', 'NET_RAW']);
  expect([...capabilitiesOf('CapEff:\t0000000000200002\n')]).toEqual(['DAC_OVERRIDE', 'SYS_ADMIN']);
  expect([...capabilitiesOf('')]).toEqual([]);
});

it('says what is missing, for what, and what to do', () => {
  needCapability('NET_ADMIN', 'trace packets', new Set(['NET_ADMIN']));
  expect(() => needCapability('NET_ADMIN', 'trace packets', new Set())).toThrow(
    'Cannot trace packets without CAP_NET_ADMIN: run as root or grant the capability',
  );
});
