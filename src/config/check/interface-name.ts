/** IFNAMSIZ is 16 with the final NUL. */
const LONGEST_BYTES = 15;

/**
 * Why no interface can have a name, or begin with it, as the kernel's dev_valid_name (net/core/dev.c) decides; undefined: one can.
 * The empty name is for the caller to judge.
 */
export function whyNoInterfaceName(name: string): string | undefined {
  if (Buffer.byteLength(name) > LONGEST_BYTES) return `is longer than ${LONGEST_BYTES} bytes`;
  const [odd] = /[/:\s\p{Cc}]/u.exec(name) ?? [];
  return odd === undefined ? undefined : `has ${JSON.stringify(odd)} in it, which no name of an interface has`;
}
