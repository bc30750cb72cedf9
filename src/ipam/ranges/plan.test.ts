import { describe, expect, it } from 'vitest';
import { formatIp, parseIp } from '../../core/index.ts';
import { AddressSet } from './allocator.ts';
import { planReservations } from './plan.ts';
import { parseRangeSets } from './range.ts';

const DUAL = parseRangeSets([[{ subnet: '10.0.0.0/29' }], [{ subnet: 'fd00::/125' }]], 'ranges');

function plan(wishes: { held?: string[]; taken?: string[]; requested?: string[] }, sets = DUAL) {
  const ips = (texts: string[] = []) => texts.map(parseIp);
  return planReservations(sets, {
    held: ips(wishes.held),
    lastReserved: [],
    taken: new AddressSet(ips([...(wishes.taken ?? []), ...(wishes.held ?? [])])),
    requested: ips(wishes.requested),
  }).map(({ address, set, fresh }) => `${set}: ${formatIp(address)}${fresh ? '' : ' held'}`);
}

describe('planReservations', () => {
  it('prefers what is asked for, then what is held, then what is free', () => {
    expect(plan({})).toEqual(['0: 10.0.0.2', '1: fd00::2']);
    expect(plan({ held: ['10.0.0.5'] })).toEqual(['0: 10.0.0.5 held', '1: fd00::2']);
    expect(plan({ held: ['10.0.0.5'], requested: ['fd00::6', '10.0.0.4'] })).toEqual(['0: 10.0.0.4', '1: fd00::6']);
    expect(plan({ held: ['10.0.0.5'], requested: ['10.0.0.5'] })).toEqual(['0: 10.0.0.5 held', '1: fd00::2']);
  });

  it('gives each set one of the addresses asked for', () => {
    const two = parseRangeSets([[{ subnet: '10.0.0.0/29' }], [{ subnet: '10.0.1.0/29' }]], 'ranges');
    expect(plan({ requested: ['10.0.1.5'] }, two)).toEqual(['0: 10.0.0.2', '1: 10.0.1.5']);
    expect(() => plan({ requested: ['10.0.0.4', '10.0.0.5'] }, two)).toThrow(
      'Cannot reserve the address asked for, 10.0.0.5: it lies in no range that has an address left to give: 10.0.0.1-10.0.0.6 and 10.0.1.1-10.0.1.6',
    );
  });

  it.each([
    [['10.0.0.4'], ['10.0.0.4'], 'it is in use'],
    [[], ['10.0.0.1'], 'it is the gateway of its range, or no address of a host'],
    [[], ['10.9.9.9'], 'it lies in no range that has an address left to give: 10.0.0.1-10.0.0.6 and fd00::1-fd00::7'],
  ])('with %j taken refuses %j', (taken, requested, reason) => {
    expect(() => plan({ taken, requested })).toThrow(
      expect.objectContaining({
        code: 'ERR_IPAM_REQUEST',
        message: `Cannot reserve the address asked for, ${requested[0]}: ${reason}`,
      }),
    );
  });
});
