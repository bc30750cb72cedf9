import { createPrivateKey, createPublicKey, randomBytes } from 'node:crypto';
import { NodeplaneError } from '../../core/index.ts';
import { WG_KEY_LEN } from '../uapi/wireguard.ts';

/** What comes before the 32 bytes of an X25519 private key in PKCS #8 (RFC 8410), the form that node:crypto reads. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');

/** Base64 of 32 bytes: 43 digits, the last of which holds four bits, and one `=`. */
const KEY_TEXT = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

/** A new private key, 32 random bytes, clamped as the kernel clamps it, so that reading it back gives the same. */
export function generatePrivateKey(): Uint8Array {
  const key = Uint8Array.from(randomBytes(WG_KEY_LEN));
  key[0]! &= 0xf8;
  key[31] = (key[31]! & 0x7f) | 0x40;
  return key;
}

/** The X25519 public key of a private key, 32 bytes. Throws ERR_ENCODE for one of another length. */
export function publicKeyOf(privateKey: Uint8Array): Uint8Array {
  checkKey(privateKey, 'private key');
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, privateKey]), format: 'der', type: 'pkcs8' });
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return Uint8Array.from(spki.subarray(spki.length - WG_KEY_LEN));
}

/** A key as `wg` prints it: base64, 44 characters. */
export function formatKey(key: Uint8Array): string {
  return Buffer.from(key).toString('base64');
}

/** A key of base64 text, as `wg` prints it; undefined for any other text. */
export function tryParseKey(text: string): Uint8Array | undefined {
  return KEY_TEXT.test(text) ? Uint8Array.from(Buffer.from(text, 'base64')) : undefined;
}

/** The key itself. Throws ERR_ENCODE, which does not show it, when it has not 32 bytes. */
export function checkKey(key: Uint8Array, what: string): Uint8Array {
  if (key.length === WG_KEY_LEN) return key;
  throw new NodeplaneError(
    'ERR_ENCODE',
    `Cannot write a ${what} of WireGuard with ${key.length} bytes: need ${WG_KEY_LEN}`,
  );
}
