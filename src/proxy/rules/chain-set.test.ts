import { expect, it } from 'vitest';
import { isGeneratedChain } from './chain-set.ts';

it.each([
  ['KUBE-SVC-X', true],
  ['KUBE-VIP-10.96.0.0/20', true],
  ['KUBE-XNP-tcp-30000-30063', true],
  ['KUBE-FIREWALL', false],
  ['KUBE-KUBELET-CANARY', false],
  ['KUBE-IPTABLES-HINT', false],
  ['KUBE-SERVICES', false],
  ['CALI-SVC', false],
])('knows whether %s is generated: %s', (name, generated) => {
  expect(isGeneratedChain(name)).toBe(generated);
});
