import { addressBits, formatIp, type IpFamily, ipFromBytes, readBe16, readU16, readU32 } from '../../../core/index.ts';
import type { Extension, Option } from '../parse-rule.ts';

/** What the bytes of an extension mean depends on. */
export interface BlobContext {
  readonly family: IpFamily;
  /** The name of a set of ipset; undefined when nobody can tell. */
  setName(index: number): string | undefined;
}

/** A struct of an extension, as the kernel has it. What is read lies within: whoever reads has looked at the size. */
export class Blob {
  readonly context: BlobContext;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array, context: BlobContext) {
    this.#bytes = bytes;
    this.context = context;
  }

  u8(at: number): number {
    return this.#bytes[at]!;
  }

  /** In host byte order, as all that is not `be16` or an address. */
  u16(at: number): number {
    return readU16(this.#bytes, at);
  }

  be16(at: number): number {
    return readBe16(this.#bytes, at);
  }

  u32(at: number): number {
    return readU32(this.#bytes, at);
  }

  has(at: number, bit: number): boolean {
    return (this.u8(at) & bit) !== 0;
  }

  bytes(at: number, length: number): Uint8Array {
    return this.#bytes.subarray(at, at + length);
  }

  /** `char [size]`, which ends with a NUL or is full. */
  text(at: number, size: number): string {
    const field = this.bytes(at, size);
    const end = field.indexOf(0);
    return Buffer.from(end < 0 ? field : field.subarray(0, end)).toString('utf8');
  }

  /** `union nf_inet_addr`, <linux/netfilter.h>, or a plain address of the family. */
  address(at: number): string {
    return formatIp(ipFromBytes(this.bytes(at, addressBits(this.context.family) / 8)));
  }

  /** An address and its mask: `10.0.0.0/8`, `10.0.0.1/32`, `10.0.0.1/255.0.0.255`. */
  network(at: number, maskAt: number): string {
    const mask = this.bytes(maskAt, addressBits(this.context.family) / 8);
    return `${this.address(at)}/${prefixLength(mask) ?? this.address(maskAt)}`;
  }

  /** An interface's name and the mask of the bytes that count: without the NUL at its end it is the beginning of names. */
  interfacePattern(at: number, maskAt: number): string {
    const length = this.bytes(maskAt, IFNAMSIZ).lastIndexOf(0xff) + 1;
    const name = this.text(at, IFNAMSIZ);
    return length > name.length ? name : `${name.slice(0, length)}+`;
  }
}

/** <linux/if.h> */
const IFNAMSIZ = 16;

/** Undefined for a mask whose bits are not in a row. */
function prefixLength(mask: Uint8Array): number | undefined {
  const bits = Array.from(mask, (byte) => byte.toString(2).padStart(8, '0')).join('');
  const length = `${bits}0`.indexOf('0');
  return bits.includes('1', length) ? undefined : length;
}

/** An option as the programs write it: `--mark 0x1`; inverted `! --mark 0x1`. */
export function iptablesOption(name: string, values: readonly (string | number)[] = [], inverted = false): Option {
  return { name, values: values.map(String), inverted };
}

/** An option, if it is given. */
export function optionIf(
  given: boolean,
  name: string,
  values: readonly (string | number)[] = [],
  inverted = false,
): Option[] {
  return given ? [iptablesOption(name, values, inverted)] : [];
}

/** `80`, `80:90` */
export function rangeText(first: number | string, last: number | string, between = ':'): string {
  return first === last ? String(first) : `${first}${between}${last}`;
}

/** `0x2a` */
export function hexText(number: number): string {
  return `0x${number.toString(16)}`;
}

/** One form of an extension's struct. */
export interface BlobForm {
  readonly revisions: readonly number[];
  /** @default both */
  readonly family?: IpFamily;
  /** So many bytes at least: what is read of the struct. */
  readonly size: number;
  /** Undefined for what is not told in options. */
  readonly decode: (blob: Blob) => readonly Option[] | undefined;
}

/** A match or a target as the kernel has it, in an entry of legacy iptables or in an expression of nf_tables. */
export interface EncodedExtension {
  readonly name: string;
  readonly revision: number;
  /** The extension's own struct; there may be padding behind it. */
  readonly info: Uint8Array;
}

/** The options a struct stands for; undefined for one of another form. */
export function decodeBlob(
  forms: readonly BlobForm[],
  { revision, info }: EncodedExtension,
  context: BlobContext,
): readonly Option[] | undefined {
  const form = forms.find(
    ({ revisions, family = context.family, size }) =>
      revisions.includes(revision) && family === context.family && info.length >= size,
  );
  return form?.decode(new Blob(info, context));
}

/** Stands for an extension that cannot be read: its name is none that is evaluated. */
export function unreadable({ name, revision }: EncodedExtension): Extension {
  return { name: `${name} (revision ${revision})`, options: [] };
}
