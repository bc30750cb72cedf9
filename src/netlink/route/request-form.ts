import { readAttributes } from '../attribute.ts';
import type { NetlinkRequest } from '../message.ts';

/**
 * Requests of one form: alike but for the values of some attributes, which have one length. The first is encoded as any other,
 * the rest are made of its bytes: encoding a route takes as long as the kernel takes to add it, putting an address in its place
 * a tenth of that.
 */
export class RequestForm {
  readonly type: number;
  readonly flags: number;
  /** The body with what was set last: valid until something else is set. */
  readonly payload: Uint8Array;
  /** By attribute type, where the value begins. */
  readonly #places: number[] = [];

  /** @param headerSize of the struct before the attributes */
  constructor({ type, flags, payload, operation }: NetlinkRequest, headerSize: number) {
    this.type = type;
    this.flags = flags;
    this.payload = Uint8Array.from(payload);
    for (const attribute of readAttributes(this.payload, headerSize, operation)) {
      this.#places[attribute.type] = attribute.value.byteOffset - this.payload.byteOffset;
    }
  }

  /** Puts a value in the place of the attribute; nothing where the form has no such attribute. */
  setBytes(type: number, value: Uint8Array): void {
    const place = this.#places[type];
    if (place === undefined) return;
    for (let at = 0; at < value.length; at++) this.payload[place + at] = value[at]!;
  }

  /** As `setBytes`, of 32 bits in host order. */
  setU32(type: number, value: number): void {
    const place = this.#places[type];
    if (place === undefined) return;
    for (let at = 0; at < 4; at++) this.payload[place + at] = value >>> (8 * at);
  }
}
