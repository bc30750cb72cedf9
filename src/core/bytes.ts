// Host byte order is little-endian on every platform nodeplane is built for (x64 and arm64); the names without `Be`
// mean host order, the names with it network order. Kernel interfaces other than packets use host order.

/** Reads an unsigned 16-bit integer in host order. The caller has checked the bounds. */
export function readU16(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8);
}

/** Reads an unsigned 32-bit integer in host order. The caller has checked the bounds. */
export function readU32(bytes: Uint8Array, at: number): number {
  return (readU16(bytes, at) | (readU16(bytes, at + 2) << 16)) >>> 0;
}

/** Reads an unsigned 16-bit integer in network order. The caller has checked the bounds. */
export function readBe16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

/** Reads an unsigned 32-bit integer in network order. The caller has checked the bounds. */
export function readBe32(bytes: Uint8Array, at: number): number {
  return ((readBe16(bytes, at) << 16) | readBe16(bytes, at + 2)) >>> 0;
}

/** A MAC address in lower case with colons, as the kernel's tools write it. */
export function formatMac(mac: Uint8Array): string {
  let text = '';
  for (let at = 0; at < mac.length; at++) text += `${at === 0 ? '' : ':'}${HEX[mac[at]!]}`;
  return text;
}

/** Made once: thousands of MAC addresses are written when all routes are compared. */
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Whether both have the same bytes, or both are missing. */
export function sameBytes(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** A number to look bytes up by, for tables of many keys for each of which a text would cost more (FNV-1a, 32 bits). */
export function hashBytes(bytes: Uint8Array): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) value = Math.imul(value ^ bytes[i]!, 0x01000193);
  return value ^ (value >>> 15);
}

/**
 * A buffer that grows while bytes are appended.
 *
 * Integers are cut to their width as C casts cut them; whoever takes values from outside checks them first, where the
 * name of the field is known. Nothing is allocated except when the buffer doubles.
 */
export class ByteWriter {
  #buffer: Buffer;
  #length = 0;

  constructor(capacity = 256) {
    this.#buffer = Buffer.allocUnsafe(capacity);
  }

  /** Number of bytes written so far, which is where the next one goes. */
  get length(): number {
    return this.#length;
  }

  /** What was written, without a copy: valid until the next write. */
  written(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Forgets what was written and keeps the memory. */
  clear(): void {
    this.#length = 0;
  }

  u8(value: number): void {
    const at = this.#extend(1);
    this.#buffer[at] = value;
  }

  u16(value: number): void {
    this.setU16(this.#extend(2), value);
  }

  u32(value: number): void {
    this.setU32(this.#extend(4), value);
  }

  be16(value: number): void {
    this.u8(value >>> 8);
    this.u8(value);
  }

  be32(value: number): void {
    this.be16(value >>> 16);
    this.be16(value);
  }

  bytes(value: Uint8Array): void {
    const at = this.#extend(value.length);
    this.#buffer.set(value, at);
  }

  /** Appends text as UTF-8 and the terminating NUL C expects. */
  cString(value: string): void {
    const length = Buffer.byteLength(value);
    const at = this.#extend(length);
    this.#buffer.write(value, at, 'utf8');
    this.u8(0);
  }

  zeros(count: number): void {
    if (count === 0) return;
    const at = this.#extend(count);
    this.#buffer.fill(0, at, at + count);
  }

  /** Appends zeros until the length is a multiple of `alignment`. */
  align(alignment: number): void {
    const rest = this.#length % alignment;
    if (rest !== 0) this.zeros(alignment - rest);
  }

  /** Overwrites 16 bits already written: for lengths known only at the end. */
  setU16(at: number, value: number): void {
    this.#buffer[at] = value;
    this.#buffer[at + 1] = value >>> 8;
  }

  /** Overwrites 32 bits already written. */
  setU32(at: number, value: number): void {
    this.setU16(at, value);
    this.setU16(at + 2, value >>> 16);
  }

  /** Makes room for `count` more bytes and returns where they begin. Call it before touching #buffer, which it replaces. */
  #extend(count: number): number {
    const at = this.#length;
    const needed = at + count;
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
      larger.set(this.#buffer.subarray(0, at));
      this.#buffer = larger;
    }
    this.#length = needed;
    return at;
  }
}
