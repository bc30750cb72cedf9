import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { linkFacts } from './link-facts.ts';

const IFF_LOOPBACK = 0x8;

it('tells of the loopback what the kernel shows elsewhere', () => {
  const facts = linkFacts('lo')!;
  expect(facts).toMatchObject({ index: 1, address: Buffer.alloc(6) });
  expect(facts.flags & IFF_LOOPBACK).toBe(IFF_LOOPBACK);
  expect(facts.mtu).toBe(Number(readFileSync('/sys/class/net/lo/mtu', 'utf8')));
});

it.each(Object.entries(networkInterfaces()))('tells the MAC of %s', (name, addresses) => {
  const mac = addresses![0]!.mac.replaceAll(':', '');
  expect(Buffer.from(linkFacts(name)!.address).toString('hex')).toBe(mac);
});

it('knows nothing of an interface that is not there', () => {
  expect(linkFacts('nplab-none')).toBeUndefined();
});
