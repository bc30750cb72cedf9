import { hash } from 'node:crypto';
import type { IpFamily } from '../../core/index.ts';

/** Six bytes of hexadecimal text with colons that can be the address of one device; undefined for anything else. */
export function tryParseMac(text: string): Uint8Array | undefined {
  if (!/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(text)) return undefined;
  const mac = Uint8Array.from(text.split(':'), (part) => Number.parseInt(part, 16));
  // The lowest bit of the first byte marks a group (IEEE 802).
  return mac.every((byte) => byte === 0) || (mac[0]! & 1) !== 0 ? undefined : mac;
}

/**
 * The MAC address of a node's VXLAN device, locally administered. It follows from the names, so that every node knows it
 * without being told, and it is the same after a restart, when the device is made again and when the node is registered anew.
 */
export function vtepMac(nodeName: string, vni: number, family: IpFamily): Uint8Array {
  // In one call and as text, a character a byte: thousands are made at a start, and an object for each would take four times as long.
  const digest = hash('sha256', `nodeplane vxlan ${family} ${vni} ${nodeName}`, 'binary');
  const mac = new Uint8Array(6);
  for (let at = 0; at < mac.length; at++) mac[at] = digest.charCodeAt(at);
  mac[0] = (mac[0]! & 0xfc) | 0x02;
  return mac;
}
