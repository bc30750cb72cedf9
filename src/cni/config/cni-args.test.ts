import { expect, it } from 'vitest';
import { parseCniArgs } from './cni-args.ts';

it.each([
  [undefined, [], undefined],
  ['', [], undefined],
  ['IgnoreUnknown=1;K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;K8S_POD_INFRA_CONTAINER_ID=c;K8S_POD_UID=d', [], undefined],
  ['IP=10.0.0.1, fd00::1;MAC=02:00:00:00:00:01;GATEWAY=10.0.0.9', ['10.0.0.1', 'fd00::1'], '02:00:00:00:00:01'],
  ['FOO=1;IgnoreUnknown=true;', [], undefined],
  ['FOO=;IgnoreUnknown=T', [], undefined],
])('reads %j', (text, ips, mac) => {
  expect(parseCniArgs(text)).toMatchObject({ ips, mac });
});

it.each([
  ['FOO=1', 'Cannot use CNI_ARGS "FOO": the key is not known, and IgnoreUnknown is not set'],
  ['FOO=1;IgnoreUnknown=0', 'Cannot use CNI_ARGS "FOO": the key is not known, and IgnoreUnknown is not set'],
  ['ip=10.0.0.1', 'Cannot use CNI_ARGS "ip": the key is not known, and IgnoreUnknown is not set'],
  ['IP', 'Cannot use CNI_ARGS "IP": it must be KEY=value'],
  ['IP=a=b', 'Cannot use CNI_ARGS "IP=a=b": it must be KEY=value'],
  ['=x', 'Cannot use CNI_ARGS "=x": it must be KEY=value'],
])('refuses %j', (text, message) => {
  expect(() => parseCniArgs(text)).toThrow(expect.objectContaining({ cniCode: 4, message }));
});

it('reads whose pod it is, when both of its names are there', () => {
  const named = 'IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web-1';
  expect(parseCniArgs(named).pod).toEqual({ namespace: 'demo', name: 'web-1' });
  expect(parseCniArgs('K8S_POD_NAME=web-1').pod).toBeUndefined();
  expect(parseCniArgs('K8S_POD_NAMESPACE=;K8S_POD_NAME=web-1').pod).toBeUndefined();
});
