const UNIT_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3, // U+00B5, micro sign
  μs: 1e-3, // U+03BC, Greek mu: Go takes both
  ns: 1e-6,
};

const PART = String.raw`(\d+\.?\d*|\.\d+)(h|ms|us|µs|μs|ns|m|s)`;

/** Go counts nanoseconds in 64 bits, about 292 years. */
const LONGEST_MS = 2 ** 63 / 1e6;

/**
 * Reads a duration in Go's syntax (`1m30s`, `500ms`, `1.5h`, `0`), as kube-proxy's flags and files write it.
 *
 * @returns milliseconds, possibly with a fraction, or undefined when the text is no duration
 */
export function parseDuration(text: string): number | undefined {
  const [, sign, parts] = new RegExp(`^([+-]?)(0|(?:${PART})+)$`).exec(text) ?? [];
  if (parts === undefined) return undefined;
  let ms = 0;
  for (const [, amount, unit] of parts.matchAll(new RegExp(PART, 'g'))) ms += Number(amount) * UNIT_MS[unit!]!;
  if (ms >= LONGEST_MS) return undefined;
  // No negative zero: it would be a value of its own to every comparison by identity.
  return sign === '-' && ms !== 0 ? -ms : ms;
}

/** Writes milliseconds as Go's `Duration.String` does: `0s`, `250µs`, `1.5s`, `15m0s`, `24h0m0s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0s';
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms < 1e-3) return `${decimal(ms * 1e6, 0)}ns`;
  if (ms < 1) return `${decimal(ms * 1e3, 3)}µs`;
  if (ms < 1000) return `${decimal(ms, 6)}ms`;
  const hours = Math.floor(ms / UNIT_MS.h!);
  const minutes = Math.floor((ms % UNIT_MS.h!) / UNIT_MS.m!);
  const seconds = `${decimal((ms % UNIT_MS.m!) / 1000, 9)}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

function decimal(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)));
}
