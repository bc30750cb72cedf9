import { expect, it } from 'vitest';
import { KernelError, NodeplaneError } from '../../core/index.ts';
import { CniError, errorJson, toCniError } from './errors.ts';

it('gives every failure a code of the table', () => {
  const refused = new KernelError('ERR_NETLINK_ACK', { operation: 'RTM_NEWROUTE', object: 'default', errno: 101 });
  const store = new NodeplaneError('ERR_IPAM_STORE', 'Cannot reserve', { cause: new Error('disk full') });
  const table = [
    [new CniError(2, 'x'), 2, ''],
    [refused, 105, '(ERR_NETLINK_ACK)'],
    [store, 5, 'disk full (ERR_IPAM_STORE)'],
    [new NodeplaneError('ERR_IPAM_CONFIG', 'x'), 7, '(ERR_IPAM_CONFIG)'],
    [new NodeplaneError('ERR_IPAM_EXHAUSTED', 'x'), 102, '(ERR_IPAM_EXHAUSTED)'],
    [new NodeplaneError('ERR_LOCK_TIMEOUT', 'x'), 11, '(ERR_LOCK_TIMEOUT)'],
    [new NodeplaneError('ERR_FFI_UNAVAILABLE', 'x'), 999, '(ERR_FFI_UNAVAILABLE)'],
    [new TypeError('oops'), 999, ''],
    ['thrown text', 999, ''],
  ] as const;
  for (const [error, code, details] of table) expect(toCniError(error)).toMatchObject({ cniCode: code, details });
  expect(toCniError(refused).message).toMatch(/RTM_NEWROUTE default: .*ENETUNREACH/);
});

it('prints the object of the specification', () => {
  expect(JSON.parse(errorJson(new CniError(7, 'short', { details: 'long' }), '1.0.0'))).toStrictEqual({
    cniVersion: '1.0.0',
    code: 7,
    msg: 'short',
    details: 'long',
  });
  expect(JSON.parse(errorJson(new CniError(7, 'short'), '1.0.0'))).not.toHaveProperty('details');
});
