import { html } from './html.ts';

/**
 * The page's only style. Numbers stand below each other; colour says nothing that a sign or a word does not say too. The colours
 * have a contrast of at least 4.5 to their ground (WCAG 2.1, 1.4.3), which test/lab/status/status.test.ts measures in a browser.
 */
export const STYLE = html`
:root { color-scheme: light dark; --ground: #fff; --ink: #16191d; --faint: #5a626c; --line: #dfe3e8; --soft: #f5f6f8;
  --good: #1a6b3a; --bad: #b3201d; --bar: #6f8fb3; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #131619; --ink: #e4e7ea; --faint: #9aa3ad; --line: #2b3036; --soft: #1b1f24;
    --good: #74cf97; --bad: #ff8f87; --bar: #56799f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 3rem; max-width: 66rem; background: var(--ground); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
header { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: .25rem 2rem;
  margin-bottom: 1.25rem; }
h1 { margin: 0; font-size: 1.5rem; font-weight: 600; }
h2 { margin: 2.5rem 0 .5rem; font-size: 1rem; font-weight: 600; }
h2 small, .faint, caption, figcaption { color: var(--faint); font-size: .875rem; font-weight: 400; }
p { margin: .5rem 0; }
a { color: inherit; text-underline-offset: .15em; }
a:focus-visible, summary:focus-visible, input:focus-visible, button:focus-visible { outline: 2px solid var(--bar); outline-offset: 1px; }
code { font: .8125rem/1.5 ui-monospace, monospace; }
.ok { color: var(--good); } .problem { color: var(--bad); } .none { color: var(--faint); }
table { width: 100%; border-collapse: collapse; }
th { padding: .25rem .75rem .25rem 0; text-align: left; font-size: .875rem; font-weight: 400; color: var(--faint); }
td { padding: .3rem .75rem .3rem 0; border-top: 1px solid var(--line); vertical-align: baseline; }
th:last-child, td:last-child { padding-right: 0; }
.n { text-align: right; white-space: nowrap; }
.mark { width: 1.5rem; }
.questions td { padding-block: .4rem; }
.questions th { padding-block: .4rem; border-top: 1px solid var(--line); color: inherit; font-size: inherit; white-space: nowrap;
  vertical-align: baseline; }
.questions .n { width: 6.5rem; } .questions .detail { padding-left: .75rem; color: var(--faint); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem 2rem; }
figure { margin: 0; } svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--faint); font: 9px system-ui, sans-serif; } svg line { stroke: var(--line); }
svg .bar { fill: var(--bar); } svg .full { fill: var(--ink); } svg .failed { fill: var(--bad); }
form { display: flex; gap: .5rem; margin: .5rem 0 .75rem; }
input, button { font: inherit; color: inherit; background: var(--soft); border: 1px solid var(--faint); border-radius: 3px;
  padding: .25rem .6rem; }
input { flex: 1; min-width: 0; max-width: 26rem; }
details { border-top: 1px solid var(--line); }
summary { display: grid; grid-template-columns: .85rem minmax(9rem, 18rem) 1fr auto; gap: 0 .75rem; padding: .35rem 0; cursor: pointer;
  list-style: none; align-items: baseline; }
summary::-webkit-details-marker { display: none; }
details[open] > summary { font-weight: 600; }
.body { margin: 0 0 1rem 2.25rem; }
.body h3 { margin: .75rem 0 .25rem; font-size: .9375rem; font-weight: 600; }
.body td { padding-block: .15rem; font-size: .875rem; }
.endpoints { width: auto; }
ol { margin: 0; padding: 0; list-style: none; } li { padding: .4rem 0; border-top: 1px solid var(--line); }
li code { display: block; margin-top: .15rem; }
li code::before { content: "$ "; color: var(--faint); }
.changes td:first-child { width: 6rem; }
nav { display: flex; gap: 1.25rem; margin-top: .75rem; }
@media (max-width: 40rem) {
  body { padding: 1rem .875rem 2rem; }
  .questions tr { display: grid; grid-template-columns: 1.5rem 1fr auto; border-top: 1px solid var(--line); padding: .35rem 0; }
  .questions td, .questions th { border: 0; padding: 0; }
  .questions .n { width: auto; }
  .questions .detail { grid-column: 2; grid-row: 2; padding: 0; font-size: .875rem; }
  .questions .age { grid-column: 3; grid-row: 2; padding-left: .75rem; color: var(--faint); font-size: .875rem; }
  summary { grid-template-columns: .85rem 1fr auto; }
  summary .where { grid-column: 2 / 4; grid-row: 2; }
  .body { margin-left: 0; }
  .wide { display: none; }
}
`;
