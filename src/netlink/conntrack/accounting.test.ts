import { expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../test/fakes/decoder-properties.ts';
import { FakeNetlink, frame, refuse } from '../../../test/fakes/fake-netlink.ts';
import { Netlink } from '../netlink.ts';
import { NFNL_MSG_ACCT_GET } from '../uapi/nfnetlink-acct.ts';
import { accountingRequest, decodeAccounting, ensureAccounting, getAccounting } from './accounting.ts';

const COUNTED = Buffer.from('00000000' + '0c000200' + '0000000100000002' + '0c000300' + '00000000000000ff', 'hex');
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

it('asks by name, as computed from the header', () => {
  // nfgenmsg of four zeros, then NFACCT_NAME (1) of six bytes, padded to eight.
  expect(hex(accountingRequest('NFNL_MSG_ACCT_GET', 1, 0, 'a').payload)).toBe('00000000' + '06000100' + '61000000');
});

it('reads packets and bytes, 64 bits each in network order', () => {
  expect(decodeAccounting(COUNTED)).toEqual({ packets: (1n << 32n) + 2n, bytes: 255n });
});

it('takes the kernel’s EBUSY for "exists" and its ENOENT for "none", and passes everything else on', () => {
  const refusing = (errno: number) =>
    new Netlink(new FakeNetlink((requests) => [frame(...requests.map((request) => refuse(request, errno)))]));
  // The question is answered by ENOENT, the change refused.
  const none = (errno: number) =>
    new Netlink(
      new FakeNetlink((requests) => [
        frame(...requests.map((request) => refuse(request, (request.type & 0xff) === NFNL_MSG_ACCT_GET ? 2 : errno))),
      ]),
    );
  expect(() => ensureAccounting(none(16), 'a')).not.toThrow();
  expect(() => ensureAccounting(none(22), 'a')).toThrow(/NFNL_MSG_ACCT_NEW counter "a".*EINVAL/);
  expect(() => ensureAccounting(refusing(22), 'a')).toThrow(/NFNL_MSG_ACCT_GET counter "a".*EINVAL/);
  expect(getAccounting(refusing(2), 'a')).toBeUndefined();
  expect(() => getAccounting(refusing(1), 'a')).toThrow(/EPERM/);
});

it('gives a value or ERR_NETLINK_DECODE for any bytes', () => {
  expectSafeDecoder(decodeAccounting, [COUNTED]);
});
