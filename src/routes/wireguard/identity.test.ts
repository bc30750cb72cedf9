import { expect, it } from 'vitest';
import { nodeObject } from '../../../test/samples/manifests.ts';
import { FLANNEL_ANNOTATIONS, type Node } from '../../kube/index.ts';
import { readWireguardIdentity, wireguardAnnotations, withdrawnWireguard } from './identity.ts';

const KEY = new Uint8Array(32).fill(7);
const nodeWith = (annotations: Readonly<Record<string, string>>): Node => {
  const node = nodeObject({ name: 'n1', ips: ['10.0.0.1'], podCidrs: ['10.244.1.0/24'] });
  return { ...node, metadata: { ...node.metadata, annotations } };
};

it('what a node tells is what others read', () => {
  expect(readWireguardIdentity(wireguardAnnotations(KEY, 4711))).toEqual({ publicKey: KEY, port: 4711 });
});

it.each(['', 'x', '0', '65536', '1e9', '-1'])('a port of "%s" is none', (port) => {
  const [[name]] = Object.entries(wireguardAnnotations(KEY, 4711)).filter(([, text]) => text === '4711') as [
    [string, string],
  ];
  expect(readWireguardIdentity({ ...wireguardAnnotations(KEY, 4711), [name]: port })?.port).toBeUndefined();
});

it('a node without a device takes back what it told, and nothing else', () => {
  const told = wireguardAnnotations(KEY, 51820);
  const wanted = withdrawnWireguard(nodeWith({ ...told, [FLANNEL_ANNOTATIONS.managed]: 'true' }));
  expect(Object.entries(wanted)).toEqual(Object.keys(told).map((name) => [name, undefined]));
  expect(withdrawnWireguard(nodeWith({}))).toEqual({});
});
