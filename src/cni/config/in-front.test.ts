import { expect, it } from 'vitest';
import { configurationsInFront } from './in-front.ts';

const OURS = '10-nodeplane.conflist';

function inFront(files: Readonly<Record<string, string>>): readonly string[] {
  const names = Object.keys({ [OURS]: '', ...files });
  return configurationsInFront(names, { ours: OURS, type: 'nodeplane-cni', read: (name) => files[name] });
}

const list = (...plugins: object[]) => JSON.stringify({ name: 'x', cniVersion: '1.0.0', plugins });

it('are those that sort before ours, the first first', () => {
  const flannel = list({ type: 'flannel' });
  expect(inFront({ '10-flannel.conflist': flannel, '10-containerd-net.conflist': '', '05-note.txt': '' })).toEqual([
    '10-containerd-net.conflist',
    '10-flannel.conflist',
  ]);
  expect(inFront({ '87-podman.conflist': list({ type: 'bridge' }), '100-crio-bridge.conflist': '{}' })).toEqual([]);
});

it('are no configurations of multus that take ours, nor what sorts behind one with our plugin', () => {
  const others = { '10-calico.conflist': list({ type: 'calico' }) };
  expect(inFront({ '00-multus.conf': '{ "name": "m", "type": "multus-shim" }' })).toEqual([]);
  expect(inFront({ '00-multus.conf': '{ "name": "m", "type": "multus-shim" }', ...others })).toEqual([
    '10-calico.conflist',
  ]);
  const delegates = (type: string) => list({ type: 'multus', delegates: [{ plugins: [{ type }] }] });
  expect(inFront({ '00-multus.conflist': delegates('nodeplane-cni'), ...others })).toEqual([]);
  expect(inFront({ '00-multus.conflist': delegates('calico') })).toEqual(['00-multus.conflist']);
  expect(inFront({ '05-mine.conflist': list({ type: 'nodeplane-cni' }), ...others })).toEqual([]);
});

it('are those too that cannot be read, as the runtime gets no further either', () => {
  expect(inFront({ '05-broken.conflist': '{', '06-list.conf': '[]' })).toEqual(['05-broken.conflist', '06-list.conf']);
});
