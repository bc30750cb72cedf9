const UNIT_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  ns: 1e-6,
};

/**
 * Reads a duration in Go's syntax (`1m30s`, `500ms`, `1.5h`, `0`), as kube-proxy's flags and files write it.
 *
 * @returns milliseconds, or undefined when the text is no duration
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  const whole = /^([+-]?)((?:\d+(?:\.\d*)?(?:h|ms|us|µs|ns|m|s))+)$/.exec(text);
  if (!whole) return undefined;
  let ms = 0;
  for (const [, amount, unit] of whole[2]!.matchAll(/(\d+(?:\.\d*)?)(h|ms|us|µs|ns|m|s)/g)) {
    ms += Number(amount) * UNIT_MS[unit!]!;
  }
  return whole[1] === '-' ? -ms : ms;
}
