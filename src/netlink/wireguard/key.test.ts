import { expect, it } from 'vitest';
import { formatKey, generatePrivateKey, publicKeyOf, tryParseKey } from './key.ts';

it('a private key has the public key of RFC 7748', () => {
  // Section 6.1, Bob's.
  const privateKey = Buffer.from('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb', 'hex');
  const publicKey = 'de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f';
  expect(Buffer.from(publicKeyOf(privateKey)).toString('hex')).toBe(publicKey);
});

it('new private keys are clamped, and differ', () => {
  const keys = Array.from({ length: 50 }, generatePrivateKey);
  for (const key of keys) expect([key.length, key[0]! & 7, key[31]! & 0xc0]).toEqual([32, 0, 0x40]);
  expect(new Set(keys.map(formatKey)).size).toBe(50);
});

it('text is read as it was written, and nothing else is', () => {
  const key = generatePrivateKey();
  const text = formatKey(key);
  expect(text).toHaveLength(44);
  expect(tryParseKey(text)).toEqual(key);
  // Bits that no byte holds, too short, too long, another alphabet, a line break.
  const last = text.replace(/.=$/, 'B=');
  for (const wrong of ['', last, text.slice(1), `A${text}`, text.replace(/^./, '_'), `${text}\n`]) {
    expect(tryParseKey(wrong)).toBeUndefined();
  }
});

it('a key of another length is refused, and not shown', () => {
  expect(() => publicKeyOf(new Uint8Array(31))).toThrow(
    'Cannot write a private key of WireGuard with 31 bytes: need 32',
  );
});
