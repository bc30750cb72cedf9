import { type Figure, isMissed } from './figure.ts';

/** A number with three digits that matter: `0.0142`, `27.0`, `1315`. */
export function format(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** A number and its unit; a count has none. */
export function quantity(value: number, unit: string): string {
  return `${format(value)} ${unit}`.trimEnd();
}

/** The cells of a figure: what, ours, the peer's, who that is, the ratio, what was promised. */
export function cells(figure: Figure): readonly string[] {
  const { what, unit, ours, peer, peerName } = figure;
  return [
    what,
    quantity(ours, unit),
    peer === undefined ? '' : quantity(peer, unit),
    peer === undefined ? 'no peer' : peerName,
    ratioText(figure),
    targetText(figure),
  ];
}

/** Ours to the peer's and how far that strayed: `0.868 x ±0.0753`; empty without a peer. */
export function ratioText({ ours, peer, spread }: Figure): string {
  if (peer === undefined) return '';
  return `${format(ours / peer)} x${spread ? ` ±${format(spread)}` : ''}`;
}

function targetText(figure: Figure): string {
  const { target, unit } = figure;
  if (!target) return '';
  const { of, atMost, atLeast, note } = target;
  const limit = atMost === undefined ? `at least ${round(atLeast!)}` : `at most ${round(atMost)}`;
  const words = [`${limit} ${of === 'ratio' ? 'x' : unit}`.trimEnd(), note].filter((word) => word !== undefined);
  return `${words.join(', ')}${isMissed(figure) ? ' MISSED' : ''}`;
}

/** As it was written, but for what division makes of it: 1 / 0.97. */
function round(value: number): string {
  return String(Number(value.toPrecision(4)));
}
