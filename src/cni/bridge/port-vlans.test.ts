import { expect, it } from 'vitest';
import { missingVlans } from './port-vlans.ts';

const TRUNK = { vlan: 100, vlanTrunk: [{ first: 200, last: 202 }] };
const own = { first: 100, last: 100, pvid: true, untagged: true };
const trunk = { first: 200, last: 202, pvid: false, untagged: false };

it('finds nothing missing of what ADD made, with others beside it', () => {
  const byDefault = { first: 1, last: 1, pvid: false, untagged: true };
  expect(missingVlans([byDefault, own, trunk], TRUNK)).toEqual({ own: false, spans: [] });
  expect(missingVlans([], { vlan: 0, vlanTrunk: [] })).toEqual({ own: false, spans: [] });
});

it('takes a port out of which the frames go tagged for none of the VLAN', () => {
  expect(missingVlans([{ ...own, untagged: false }, trunk], TRUNK)).toMatchObject({ own: true });
  expect(missingVlans([{ ...own, pvid: false }, trunk], TRUNK)).toMatchObject({ own: true });
});

it('tells the first VLAN of a trunk that is missing', () => {
  expect(missingVlans([own, { ...trunk, last: 200 }], TRUNK)).toEqual({
    own: false,
    spans: [{ first: 200, last: 202, id: 201 }],
  });
});
