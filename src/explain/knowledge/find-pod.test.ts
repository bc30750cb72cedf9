import { expect, it } from 'vitest';
import { FakeServiceStore, makeSlice } from '../../../test/fakes/service-objects.ts';
import { atOnce } from '../../core/index.ts';
import { findPod } from './find-pod.ts';

const store = new FakeServiceStore();
store.put('shop/web', [], {});
store.slicesByService.set('shop/web', [
  makeSlice('shop/web', [
    { addresses: ['10.244.1.9'], nodeName: 'n1', targetRef: 'web-1' },
    { addresses: ['10.244.2.9'], nodeName: 'n2', targetRef: 'web-2' },
    { addresses: ['10.244.2.10'], nodeName: 'n2' },
  ]),
  makeSlice('shop/web', [{ addresses: ['fd00::9'], nodeName: 'n2', targetRef: 'web-2' }], { addressType: 'IPv6' }),
]);
store.put('other/web', [], {});
store.slicesByService.set('other/web', [makeSlice('other/web', [{ addresses: ['10.244.3.9'], targetRef: 'web-7' }])]);

const find = (namespace: string, name: string) => atOnce(findPod(store, { namespace, name }));

it('finds the addresses and the node of a pod of any node', () => {
  const wanted = { name: 'shop/web-2', addresses: ['10.244.2.9', 'fd00::9'], node: 'n2', near: [] };
  expect(find('shop', 'web-2')).toEqual(wanted);
  expect(find('other', 'web-7')).toEqual({ name: 'other/web-7', addresses: ['10.244.3.9'], node: null, near: [] });
});

it('tells names that are near, of its namespace and the same ones of others', () => {
  expect(find('shop', 'web-3')).toMatchObject({ addresses: [], node: null, near: ['shop/web-1', 'shop/web-2'] });
  expect(find('shop', 'web-7').near).toContain('other/web-7');
  expect(find('nowhere', 'db')).toEqual({ name: 'nowhere/db', addresses: [], node: null, near: [] });
});
