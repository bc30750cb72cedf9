/**
 * Bytes of which some bits are not known: a header whose identification nobody has seen, a register that was loaded from
 * what cannot be asked. Comparing them answers true, false, or undefined for "cannot tell".
 */
export class KnownBytes {
  readonly bytes: Uint8Array;
  /** As long as `bytes`; a bit is 1 where the same bit of `bytes` is known. Bits that are not known are 0 in `bytes`. */
  readonly known: Uint8Array;
  /** Whatever its bits are that are not known, one of them all is 1. Its copies know nothing of that. */
  readonly isNotZero: boolean;

  /** Both are its own, and no Buffers: their `slice` copies nothing. */
  private constructor(bytes: Uint8Array, known: Uint8Array, isNotZero = false) {
    this.bytes = bytes;
    this.known = known;
    this.isNotZero = isNotZero;
  }

  /** All of it is known. The bytes are copied. */
  static of(bytes: Uint8Array): KnownBytes {
    return new KnownBytes(new Uint8Array(bytes), new Uint8Array(bytes.length).fill(0xff));
  }

  /** What the mask has bits for is known. */
  static partly(bytes: Uint8Array, known: Uint8Array): KnownBytes {
    const mask = new Uint8Array(known);
    return new KnownBytes(
      new Uint8Array(bytes).map((byte, index) => byte & mask[index]!),
      mask,
    );
  }

  /** Nothing of it is known. */
  static unknown(length: number): KnownBytes {
    return new KnownBytes(new Uint8Array(length), new Uint8Array(length));
  }

  /** The same, of which more is known: it is not 0, as no port is that a socket has. */
  notZero(): KnownBytes {
    return new KnownBytes(this.bytes, this.known, true);
  }

  get length(): number {
    return this.bytes.length;
  }

  get isKnown(): boolean {
    return this.known.every((mask) => mask === 0xff);
  }

  /** The same for the same bytes of which the same is known. */
  get text(): string {
    return [this.bytes, this.known].map((bytes) => Buffer.from(bytes).toString('hex')).join('/');
  }

  /** A copy of `length` bytes; what lies behind the end is not known. */
  slice(offset: number, length: number): KnownBytes {
    const end = offset + length;
    if (end <= this.length) return new KnownBytes(this.bytes.slice(offset, end), this.known.slice(offset, end));
    const part = KnownBytes.unknown(length);
    part.bytes.set(this.bytes.subarray(offset));
    part.known.set(this.known.subarray(offset));
    return part;
  }

  /** A copy in which `part` stands at `offset`. */
  with(offset: number, part: KnownBytes): KnownBytes {
    const copy = this.slice(0, this.length);
    copy.bytes.set(part.bytes, offset);
    copy.known.set(part.known, offset);
    return copy;
  }

  /** (this & mask) ^ xor, byte by byte. What the mask takes away need not be known. */
  masked(mask: Uint8Array, xor: Uint8Array): KnownBytes {
    const known = this.known.map((bits, index) => bits | (~mask[index]! & 0xff));
    const bytes = this.bytes.map((byte, index) => ((byte & mask[index]!) ^ xor[index]!) & known[index]!);
    return new KnownBytes(bytes, known);
  }

  /** this ^ other, of the same length. */
  xor(other: KnownBytes): KnownBytes {
    return KnownBytes.partly(
      this.bytes.map((byte, index) => byte ^ other.bytes[index]!),
      this.known.map((bits, index) => bits & other.known[index]!),
    );
  }

  /** What is known of both, of the same length, and is the same. */
  common(other: KnownBytes): KnownBytes {
    const differs = this.xor(other);
    return KnownBytes.partly(
      this.bytes,
      differs.known.map((bits, index) => bits & ~differs.bytes[index]!),
    );
  }

  /** The bytes of each group of `size` in reverse order. */
  reversed(size: number): KnownBytes {
    const turn = (bytes: Uint8Array) =>
      bytes.map((_, index) => bytes[index - (index % size) + size - 1 - (index % size)]!);
    return new KnownBytes(turn(this.bytes), turn(this.known));
  }

  /** Whether it is `other`; undefined if it could be either. */
  equals(other: Uint8Array): boolean | undefined {
    let certain = true;
    for (let index = 0; index < this.length; index++) {
      const mask = this.known[index]!;
      if (((this.bytes[index]! ^ other[index]!) & mask) !== 0) return false;
      if (mask !== 0xff) certain = false;
    }
    if (certain) return true;
    return this.isNotZero && isZero(other) ? false : undefined;
  }

  /** As memcmp: negative, 0 or positive; undefined if a bit that is not known decides. */
  compare(other: Uint8Array): number | undefined {
    const most = this.bytes.map((byte, index) => byte | (~this.known[index]! & 0xff));
    const [low, high] = [difference(this.bytes, other), difference(most, other)];
    if (Math.sign(low) === Math.sign(high)) return low;
    return this.isNotZero && isZero(other) ? 1 : undefined;
  }
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

/** As memcmp, of the same length. */
function difference(a: Uint8Array, b: Uint8Array): number {
  const at = a.findIndex((byte, index) => byte !== b[index]);
  return at < 0 ? 0 : a[at]! - b[at]!;
}
