import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FakeNetlink, frame, refuse } from '../../../test/fakes/fake-netlink.ts';
import { NodeplaneError } from '../../core/index.ts';
import { Netlink } from '../netlink.ts';
import { accountingRequest, decodeAccounting, ensureAccounting, getAccounting } from './accounting.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

it('asks by name, as computed from the header', () => {
  // nfgenmsg of four zeros, then NFACCT_NAME (1) of six bytes, padded to eight.
  expect(hex(accountingRequest('NFNL_MSG_ACCT_GET', 1, 0, 'a').payload)).toBe('00000000' + '06000100' + '61000000');
});

it('reads packets and bytes, 64 bits each in network order', () => {
  const payload = Buffer.from('00000000' + '0c000200' + '0000000100000002' + '0c000300' + '00000000000000ff', 'hex');
  expect(decodeAccounting(payload)).toEqual({ packets: (1n << 32n) + 2n, bytes: 255n });
});

it('takes the kernel’s EBUSY for "exists" and its ENOENT for "none", and passes everything else on', () => {
  const refusing = (errno: number) =>
    new Netlink(new FakeNetlink((requests) => [frame(...requests.map((request) => refuse(request, errno)))]));
  expect(() => ensureAccounting(refusing(16), 'a')).not.toThrow();
  expect(() => ensureAccounting(refusing(22), 'a')).toThrow(/NFNL_MSG_ACCT_NEW counter "a".*EINVAL/);
  expect(getAccounting(refusing(2), 'a')).toBeUndefined();
  expect(() => getAccounting(refusing(1), 'a')).toThrow(/EPERM/);
});

it('gives a value or a typed error for any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      try {
        decodeAccounting(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(NodeplaneError);
        expect(error).toMatchObject({ code: 'ERR_NETLINK_DECODE' });
      }
    }),
  );
});
