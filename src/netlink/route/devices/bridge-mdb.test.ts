import { expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../../test/fakes/decoder-properties.ts';
import { formatIp } from '../../../core/index.ts';
import { decodeBridgeListeners } from './bridge-mdb.ts';

// By hand: br_port_msg about link 2, MDBA_MDB with one MDBA_MDB_ENTRY, in it the port 5 for ff02::1:ff00:3 and, of IPv4, for 239.0.0.1.
const ANSWER = Buffer.from(
  '0700000002000000' +
    '4c000100' +
    '48000100' +
    '24000100' +
    '0500000000000000' +
    'ff0200000000000000000001ff000003' +
    '86dd0000' +
    '00000000' +
    '20000100' +
    '0500000000000000' +
    'ef000001000000000000000000000000' +
    '08000000',
  'hex',
);

it('who listens to groups of IPv6', () => {
  const listeners = decodeBridgeListeners(ANSWER).map(({ index, group }) => `${index} ${formatIp(group)}`);
  expect(listeners).toEqual(['5 ff02::1:ff00:3']);
});

it('never reads past its bytes', () => expectSafeDecoder(decodeBridgeListeners, [ANSWER]));
