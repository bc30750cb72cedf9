import { durationText } from '../../../core/index.ts';
import { type FamilySyncs, STATUS_LIMITS, type SyncPoint } from '../status.ts';
import { countText, secondsBetween, secondsText } from '../words.ts';
import { type Html, html } from './html.ts';

/** In units of the picture, which is about as many pixels wide on a phone. */
const WIDTH = 360;
const LEFT = 38;
const HEIGHT = 84;
const TOP = 6;
const STEP = (WIDTH - LEFT) / STATUS_LIMITS.syncs;

/** Syncs take from a fraction of a millisecond to seconds: only equal ratios fit one picture. */
const SHORTEST = 1e-4;
const LINES = [0.001, 0.01, 0.1, 1, 10] as const;

/** How long the last syncs of a family took, as bars on a logarithmic scale; the newest is at the right. */
export function syncChart({ family, syncs }: FamilySyncs, now: string): Html {
  if (syncs.length === 0) return html`<p class="faint">${family}: nothing was written yet.</p>`;
  const longest = Math.max(...syncs.map(({ seconds }) => seconds));
  const top = LINES.find((line) => line >= longest) ?? 100;
  const y = (seconds: number) => {
    const share = Math.log(Math.max(seconds, SHORTEST) / SHORTEST) / Math.log(top / SHORTEST);
    return Math.round((HEIGHT - share * (HEIGHT - TOP)) * 10) / 10;
  };
  const first = STATUS_LIMITS.syncs - syncs.length;
  const bars = syncs.map((sync, index) => {
    const height = Math.max(1, HEIGHT - y(sync.seconds));
    const x = LEFT + (first + index) * STEP;
    return html`<rect class="${kindOf(sync)}" x="${round(x)}" y="${round(HEIGHT - height)}" width="${round(STEP - 1)}" height="${round(height)}"><title>${titleOf(sync, now)}</title></rect>`;
  });
  const lines = LINES.filter((line) => line <= top).map(
    (line) =>
      html`<line x1="${LEFT}" x2="${WIDTH}" y1="${y(line)}" y2="${y(line)}"/><text x="${LEFT - 5}" y="${y(line) + 3}" text-anchor="end">${labelOf(line)}</text>`,
  );
  const summary = `${family}: ${countText(syncs.length, 'sync')}, median ${secondsText(medianOf(syncs))}, longest ${secondsText(longest)}`;
  return html`<figure><svg viewBox="0 0 ${WIDTH} ${HEIGHT + 1}" role="img" aria-label="${summary}">${lines}${bars}<line x1="${LEFT}" x2="${WIDTH}" y1="${HEIGHT}" y2="${HEIGHT}"/></svg><figcaption>${summary}</figcaption></figure>
`;
}

function kindOf({ failed, full }: SyncPoint): string {
  return failed ? 'failed' : full ? 'full' : 'bar';
}

function titleOf({ at, seconds, full, failed }: SyncPoint, now: string): string {
  const what = `${full ? 'full sync' : 'sync'}${failed ? ', failed' : ''}`;
  return `${what}, ${secondsText(seconds)}, ${durationText(secondsBetween(at, now))} ago`;
}

function medianOf(syncs: readonly SyncPoint[]): number {
  const sorted = syncs.map(({ seconds }) => seconds).sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}

function labelOf(seconds: number): string {
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds} s`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
