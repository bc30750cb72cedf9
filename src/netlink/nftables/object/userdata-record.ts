// Records of userdata, in the format of libnftnl: one byte type, one byte length, value.

/** A record. */
export function record(type: number, value: readonly number[]): number[] {
  return [type, value.length, ...value];
}

/** A record with a 32-bit number in host order. */
export function numberRecord(type: number, value: number): number[] {
  return record(type, [...new Uint8Array(Uint32Array.of(value).buffer)]);
}

/** The value of the first record of this type; undefined when there is none, or when it is cut off. */
export function readRecord(userdata: Uint8Array | undefined, type: number): Uint8Array | undefined {
  if (userdata === undefined) return undefined;
  for (let at = 0; at + 2 <= userdata.length; at += 2 + userdata[at + 1]!) {
    const end = at + 2 + userdata[at + 1]!;
    if (userdata[at] === type) return end > userdata.length ? undefined : userdata.subarray(at + 2, end);
  }
  return undefined;
}
