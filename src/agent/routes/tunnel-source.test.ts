import { expect, it } from 'vitest';
import { numberedNode } from '../../../test/fakes/routes/node-objects.ts';
import { parseIp } from '../../core/index.ts';
import type { RouteEvent } from '../../routes/index.ts';
import type { Logger } from '../logger.ts';
import { TunnelSource } from './tunnel-source.ts';

const syncedFrom = (address: string): RouteEvent => ({
  family: 'IPv4',
  kind: 'synced',
  full: true,
  seconds: 0,
  operations: 0,
  figures: { peers: { direct: 0, tunnel: 0, wireguard: 0 }, wanted: 0, inKernel: 0, leftOut: 0 },
  own: { address: parseIp(address), mac: new Uint8Array(6), ranges: [], mtu: 1450 },
});

it('warns once of an address that the Node object does not name, and again of another one', () => {
  const warned: unknown[] = [];
  const logger = { warn: ({ address }: { address: string }) => warned.push(address) } as unknown as Logger;
  const source = new TunnelSource(logger);
  // Nothing is known of this machine's Node yet.
  source.observe(syncedFrom('192.168.0.1'));
  source.nodeChanged(numberedNode(1));
  for (const address of ['10.0.0.1', '192.168.0.1', '192.168.0.1', '192.168.0.2']) source.observe(syncedFrom(address));
  expect(warned).toEqual(['192.168.0.1', '192.168.0.2']);
  source.nodeChanged(numberedNode(1, { ips: ['10.0.0.1', '192.168.0.2'] }));
  source.observe(syncedFrom('192.168.0.2'));
  expect(warned).toHaveLength(2);
});
