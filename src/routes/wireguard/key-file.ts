import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorText, isExists, isNotFound, NodeplaneError } from '../../core/index.ts';
import { formatKey, generatePrivateKey, tryParseKey } from '../../netlink/wireguard/index.ts';
import { makeOwnDirectory } from '../../sys/index.ts';

/** More than a key and a newline; of a larger file no more is read. */
const LARGEST_FILE = 4096;
const READABLE_BY_OTHERS = 0o077;

/**
 * The private key of this node: that of a file, as `wg genkey` prints it. Where there is no file, one with a new key is made, which
 * is there as a whole or not at all, and is never put in the place of another.
 *
 * @returns 32 bytes
 * @throws ERR_ROUTES when the file cannot be read, has something else in it, or may be read by others; ERR_UNSAFE_PATH
 */
export function keyOfFile(path: string): Uint8Array {
  try {
    makeOwnDirectory(dirname(path), 'the key of WireGuard');
    return readKey(path) ?? makeKey(path);
  } catch (cause) {
    if (cause instanceof NodeplaneError) throw cause;
    throw unusable(path, errorText(cause), cause);
  }
}

/** The private key in a file; undefined when there is none. Throws ERR_ROUTES, errors of node:fs. */
function readKey(path: string): Uint8Array | undefined {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
  try {
    const { mode, size } = fstatSync(fd);
    if ((mode & READABLE_BY_OTHERS) !== 0) {
      throw unusable(path, `its mode is ${(mode & 0o7777).toString(8).padStart(4, '0')}, so that others may read it`);
    }
    const key = size <= LARGEST_FILE ? tryParseKey(readFileSync(fd, 'utf8').trim()) : undefined;
    if (!key) throw unusable(path, 'it has no private key in it (base64, 44 characters)');
    return clamped(key);
  } finally {
    closeSync(fd);
  }
}

/** A link to a complete file is made, or refused where somebody else has been faster: his key counts then. */
function makeKey(path: string): Uint8Array {
  const key = generatePrivateKey();
  const fresh = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const fd = openSync(fresh, 'wx', 0o600);
    try {
      writeSync(fd, `${formatKey(key)}\n`);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    linkSync(fresh, path);
    return key;
  } catch (error) {
    const other = isExists(error) ? readKey(path) : undefined;
    if (!other) throw error;
    return other;
  } finally {
    rmSync(fresh, { force: true });
  }
}

/** As the kernel has it (curve25519_clamp_secret): what is read back from there is compared with it. */
function clamped(key: Uint8Array): Uint8Array {
  const result = Uint8Array.from(key);
  result[0]! &= 0xf8;
  result[31] = (result[31]! & 0x7f) | 0x40;
  return result;
}

function unusable(path: string, reason: string, cause?: unknown): NodeplaneError {
  const message = `Cannot use the private key of WireGuard in "${path}": ${reason}; put a key of \`wg genkey\` into it, mode 0600, or remove it, and a new one is made`;
  return new NodeplaneError('ERR_ROUTES', message, { facts: { path }, cause });
}
