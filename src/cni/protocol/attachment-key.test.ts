import { expect, it } from 'vitest';
import { attachmentKey } from './attachment-key.ts';
import { isInterfaceName, type NetworkName, readAttachment } from './environment.ts';
import { fingerprint } from './fingerprint.ts';

const keyOf = (network: string, containerId: string, ifname = 'eth0') =>
  attachmentKey(network as NetworkName, readAttachment({ CNI_CONTAINERID: containerId, CNI_IFNAME: ifname }));

it('keeps the names of attachments made by earlier versions', () => {
  // Pods live longer than the plugin: a change of these values would hide their links from DEL.
  expect(keyOf('net', 'pod-a')).toMatchObject({ hostName: 'vethd7226798979', alias: 'net/pod-a/eth0' });
  expect(fingerprint('')).toBe(0xefd01f60ba992926n);
});

it('gives every network, container and interface a link of its own', () => {
  const names = new Set<string>();
  for (let i = 0; i < 2000; i++) {
    for (const { hostName } of [keyOf('a', `c${i}`), keyOf('b', `c${i}`), keyOf('a', `c${i}`, 'net1')]) {
      expect(isInterfaceName(hostName)).toBe(true);
      names.add(hostName);
    }
  }
  expect(names.size).toBe(6000);
});

it('cuts an alias to what the kernel keeps', () => {
  expect(keyOf('n'.repeat(200), 'c'.repeat(64)).alias).toHaveLength(255);
});
