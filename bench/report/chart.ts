import type { Figure } from './figure.ts';
import { format, quantity } from './text.ts';

const WIDTH = 720;
const HEIGHT = 108;
const BAR_START = 210;
/** The longest bar; right of it there is room for its number. */
const BAR_LENGTH = 380;

/** The file of a headline's chart: `routes-vxlan-ipv4-tcp-throughput.svg`. */
export function chartName({ headline = '' }: Figure): string {
  const words = headline.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return `${words.join('-')}.svg`;
}

/**
 * A headline figure as a picture: one bar for nodeplane, one for the peer, both from zero on one scale. It has no script, no
 * font of its own, and follows the reader's light or dark page.
 */
export function chart({ headline = '', ours, peer, peerName, unit }: Figure): string {
  const longest = Math.max(ours, peer ?? 0);
  const bars: [name: string, value: number, style: string][] = [['nodeplane', ours, 'ours']];
  if (peer !== undefined) bars.push([peerName, peer, 'peer']);
  const rows = bars.map(([name, value, style], index) => {
    const y = 44 + 30 * index;
    // Two pixels, so that what is very much faster is still seen to be there.
    const length = Math.max(2, Math.round((BAR_LENGTH * value) / longest));
    return [
      `<text x="${BAR_START - 10}" y="${y + 14}" text-anchor="end">${xmlText(name)}</text>`,
      `<rect class="${style}" x="${BAR_START}" y="${y}" width="${length}" height="20" rx="2"/>`,
      `<text class="number" x="${BAR_START + length + 8}" y="${y + 14}">${xmlText(quantity(value, unit))}</text>`,
    ].join('\n');
  });
  const ratio = peer === undefined ? '' : `${format(ours / peer)} x`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">
<title>${xmlText(headline)}</title>
<style>
text { font: 13px system-ui, sans-serif; fill: #333 }
.head { font-weight: 600; fill: #111 }
.number { font-variant-numeric: tabular-nums }
.ours { fill: #1f6feb }
.peer { fill: #b6bec8 }
@media (prefers-color-scheme: dark) {
text { fill: #c9d1d9 } .head { fill: #f0f6fc } .ours { fill: #58a6ff } .peer { fill: #6e7681 }
}
</style>
<text class="head" x="10" y="22">${xmlText(headline)}</text>
<text class="head" x="${WIDTH - 10}" y="22" text-anchor="end">${ratio}</text>
${rows.join('\n')}
</svg>
`;
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
