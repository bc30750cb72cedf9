import { durationText, type Steps } from '../../../core/index.ts';
import type { OwnCommands } from '../own-commands.ts';
import type { AddressRange, Change, PeerList, Problem, Question, Status } from '../status.ts';
import { ageText, countText, MARKS, programText, secondsBetween } from '../words.ts';
import { syncChart } from './chart.ts';
import { type Html, html } from './html.ts';
import { servicesHtml } from './services-html.ts';
import { STYLE } from './style.ts';

/** The whole page: the eight lines first, problems last. Every name in it is text. */
export function* statusHtml(status: Status, commands: OwnCommands): Steps<string> {
  const {
    node,
    version,
    mode,
    takenAt,
    questions,
    problems,
    problemsTotal,
    syncs,
    peers,
    addresses,
    drift,
    changes,
    ruleChanges,
  } = status;
  const wrong = countText(problemsTotal, 'problem');
  const services = yield* servicesHtml(status.services, { now: takenAt, commands });
  yield;
  const page = html`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${problemsTotal > 0 ? `✗ ${wrong}` : '✓'} ${node}</title><link rel="icon" href="data:,"><style>${STYLE}</style></head><body>
<header><h1>${node}</h1><span class="faint">nodeplane ${version}, ${mode}, ${takenAt.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')}</span></header>
<p>${problemsTotal > 0 ? html`<a class="problem" href="#problems">✗ ${wrong}</a>` : html`<span class="ok">✓ No problems</span>`}</p>
<table class="questions">${questions.map(questionHtml)}</table>
<h2>Sync times <small>of the last syncs that wrote something; strong: all Services at once</small></h2>
<div class="charts">${syncs.map((one) => syncChart(one, takenAt))}${syncs.length === 0 && html`<p class="faint">Nothing was written yet.</p>`}</div>
${services}${peers && peersHtml(peers, takenAt, commands)}${addresses && addressesHtml(addresses)}
<h2>Drift <small>rules that others changed</small></h2>
${drift.length === 0 ? html`<p class="faint">None.</p>` : html`<ol>${drift.map((one) => html`<li>${one}</li>`)}</ol>`}
${foreignHtml(ruleChanges, takenAt)}${changesHtml(changes, takenAt)}${problemsHtml(problems, problemsTotal)}
<p class="faint">The same for programs: <a href="?format=json">JSON</a>. In a terminal: <code>${commands.status}</code></p>
</body></html>
`;
  return page.toString();
}

function questionHtml({ id, title, verdict, figure, detail, ageSeconds }: Question): Html {
  return html`<tr><td class="mark ${verdict}">${MARKS[verdict]}</td><th scope="row">${verdict === 'problem' ? html`<a class="problem" href="#problem-${id}">${title}</a>` : title}</th><td class="n">${figure}</td><td class="detail">${detail}</td><td class="n age">${ageText({ id, ageSeconds })}</td></tr>
`;
}

function peersHtml({ mode, total, peers }: PeerList, now: string, commands: OwnCommands): Html {
  return html`<h2>Ways to other nodes <small>${total}, --routes ${mode}</small></h2>
${
  peers.length === 0
    ? html`<p class="faint">No other node has pods.</p>`
    : html`<table><tr><th class="mark"></th><th>Node</th><th class="wide">Way</th><th>Pods</th><th class="n">Since</th></tr>${peers.map(
        ({ node, way, podCidrs, problem, lastChange }) =>
          html`<tr><td class="${problem === null ? 'ok' : 'problem'}">${problem === null ? '✓' : '✗'}</td><td>${node}</td><td class="wide faint">${way || '–'}</td><td>${podCidrs.slice(0, 4).join(' ')}${problem !== null && html`<div class="problem">${problem}</div>`}</td><td class="n">${durationText(secondsBetween(lastChange, now))}</td></tr>
`,
      )}</table>`
}${total > peers.length && html`<p class="faint">and ${total - peers.length} more: <code>${commands.routes}</code></p>`}
`;
}

function addressesHtml(ranges: readonly AddressRange[]): Html {
  return html`<h2>Pod addresses <small>of this node</small></h2>
${
  ranges.length === 0
    ? html`<p class="faint">This node has no range.</p>`
    : html`<table><tr><th>Range</th><th>New pods</th><th class="n">Used</th><th class="n">Free</th></tr>${ranges.map(
        ({ cidr, state, used, free }) =>
          html`<tr><td>${cidr}</td><td class="${state === 'open' ? 'ok' : 'none'}">${state === 'open' ? 'yes' : 'no more'}</td><td class="n">${used}</td><td class="n">${free}</td></tr>`,
      )}</table>`
}
`;
}

function foreignHtml(changes: Status['ruleChanges'], now: string): Html {
  return html`<h2>Rules changed by others <small>in nf_tables</small></h2>
${
  changes.length === 0
    ? html`<p class="faint">None since the agent’s start.</p>`
    : html`<table class="changes">${changes.map(
        (change) =>
          html`<tr><td class="n">${durationText(secondsBetween(change.at, now))} ago</td><td>${programText(change)}: ${change.what}${change.count > 1 && html` <span class="faint">${change.count} times</span>`}</td></tr>
`,
      )}</table>`
}
`;
}

function changesHtml(changes: readonly Change[], now: string): Html {
  return html`<h2>Lately changed</h2>
${
  changes.length === 0
    ? html`<p class="faint">Nothing since the agent’s start.</p>`
    : html`<table class="changes">${changes.map(
        ({ at, what, count }) =>
          html`<tr><td class="n">${durationText(secondsBetween(at, now))} ago</td><td>${what}${count > 1 && html` <span class="faint">${count} times</span>`}</td></tr>
`,
      )}</table>`
}
`;
}

function problemsHtml(problems: readonly Problem[], total: number): Html {
  const seen = new Set<string>();
  const anchor = (id: string) => {
    if (seen.has(id)) return false;
    seen.add(id);
    return html` id="problem-${id}"`;
  };
  return html`<h2 id="problems">Problems <small>${total}</small></h2>
${
  total === 0
    ? html`<p class="faint">None.</p>`
    : html`<ol>${problems.map(
        ({
          question,
          message,
          command,
        }) => html`<li${anchor(question)}><span class="problem">✗</span> ${message}<code>${command}</code></li>
`,
      )}</ol>`
}${total > problems.length && html`<p class="faint">and ${total - problems.length} more</p>`}
`;
}
