import { expect, it } from 'vitest';
import type { BatchTransport } from '../transport.ts';
import { isOwnPort } from './listening/own-ports.ts';
import { Nftables } from './nftables.ts';

/** Opens as many sockets as there is room for, and counts those that are open. */
function sockets(room: number) {
  const open = new Set<number>();
  let opened = 0;
  const openOne = (): BatchTransport => {
    if (opened === room) throw new Error('EMFILE');
    const portId = 4700 + opened++;
    open.add(portId);
    return {
      portId,
      send: () => {},
      sendAsync: async () => {},
      receive: () => new Uint8Array(),
      receiveWaiting: () => undefined,
      makeRoom: () => {},
      onReadable: () => () => {},
      close: () => void open.delete(portId),
    };
  };
  return { open, openOne };
}

it.each([0, 1, 2, 3])('leaves no socket open when there is room for %d of its four', (room) => {
  const { open, openOne } = sockets(room);
  expect(() => new Nftables(openOne)).toThrow('EMFILE');
  expect([...open]).toEqual([]);
  expect(isOwnPort(4700)).toBe(false);
});

it('closes all of them', () => {
  const { open, openOne } = sockets(4);
  const nft = new Nftables(openOne);
  expect(open.size).toBe(4);
  nft.close();
  expect([...open]).toEqual([]);
});
