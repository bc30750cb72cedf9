const FNV_OFFSET_BASIS = 0xcbf29ce484222325n;
const FNV_PRIME = 0x100000001b3n;
const U64 = 0xffffffffffffffffn;

/**
 * 64 well-mixed bits of a text, for names and MAC addresses that must come out the same each time: FNV-1a, then MurmurHash3's
 * finalizer. No defence against chosen collisions; node:crypto would have one, and takes 2 ms of every call to load.
 */
export function fingerprint(text: string): bigint {
  let hash = FNV_OFFSET_BASIS;
  for (const byte of Buffer.from(text)) hash = ((hash ^ BigInt(byte)) * FNV_PRIME) & U64;
  hash ^= hash >> 33n;
  hash = (hash * 0xff51afd7ed558ccdn) & U64;
  hash ^= hash >> 33n;
  hash = (hash * 0xc4ceb9fe1a85ec53n) & U64;
  return hash ^ (hash >> 33n);
}
