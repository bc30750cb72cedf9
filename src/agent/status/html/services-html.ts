import { durationText, type Steps, withPort } from '../../../core/index.ts';
import type { OwnCommands } from '../own-commands.ts';
import type { PortReport, ServiceList, ServiceReport } from '../status.ts';
import { addressTexts, countText, MARKS, secondsBetween, standingOf, traitTexts, VERDICTS, whyText } from '../words.ts';
import { type Html, html } from './html.ts';

/** When the page was made, and the commands that ask the same agent. */
interface Shown {
  readonly now: string;
  readonly commands: OwnCommands;
}

/** The Services of a page, each to be opened, with a search and the way to the other pages. In steps: there are up to a hundred. */
export function* servicesHtml(list: ServiceList, shown: Shown): Steps<Html> {
  const { total, query, matched, page, pages, services } = list;
  const entries: Html[] = [];
  for (const service of services) {
    entries.push(serviceHtml(service, shown, services.length === 1));
    yield;
  }
  const found = query === '' ? `${total}` : `${matched} of ${total}`;
  return html`<h2 id="services">Services <small>${found}; those to look at first</small></h2>
<form method="get" action="/status#services"><input type="search" name="q" value="${query}" placeholder="name, address or port" aria-label="Search Services"><button>Search</button></form>
${entries}${entries.length === 0 && html`<p class="faint">No Service${query === '' ? '' : ' fits the search'}.</p>`}
${pages > 1 && html`<nav>${pageLink(query, page - 1, pages, 'Previous')}<span class="faint">page ${page} of ${pages}</span>${pageLink(query, page + 1, pages, 'Next')}</nav>`}
`;
}

function pageLink(query: string, page: number, pages: number, text: string): Html {
  if (page < 1 || page > pages) return html`<span class="faint">${text}</span>`;
  return html`<a href="?${new URLSearchParams({ q: query, page: String(page) }).toString()}#services">${text}</a>`;
}

function serviceHtml(service: ServiceReport, { now, commands }: Shown, open: boolean): Html {
  const { name, ports, problems, lastChange } = service;
  const { verdict, text } = standingOf(service);
  const changed = lastChange === null ? 'not since the agent’s start' : `${ago(lastChange, now)} ago`;
  return html`<details${open && html` open`}><summary><span class="${verdict}">${MARKS[verdict]}</span><span>${name}</span><span class="where faint">${whereText(ports)}${text && html`${ports.length > 0 && ' · '}<span class="${verdict}">${text}</span>`}</span><span class="n">${usedText(ports)}</span></summary>
<div class="body">${problems.map((problem) => html`<p class="problem">${problem}</p>`)}${ports.map(portHtml)}<p class="faint">Last change: ${changed}. <code>${commands.services(name)}</code> shows its connections, too.</p></div></details>
`;
}

function whereText(ports: readonly PortReport[]): string {
  const ips = new Set(ports.map(({ clusterIp }) => clusterIp));
  const numbers = new Set(ports.map(({ port, protocol }) => `${port}/${protocol}`));
  const shown = [...numbers].slice(0, 4).join(' ');
  return `${[...ips].join(' ')} ${shown}${numbers.size > 4 ? ` and ${numbers.size - 4} more` : ''}`.trim();
}

/** Endpoints in use, of all, over the ports. */
function usedText(ports: readonly PortReport[]): string {
  const sum = (of: (port: PortReport) => number) => ports.reduce((total, port) => total + of(port), 0);
  return ports.length === 0 ? '' : `${sum((port) => port.endpointsUsed)} of ${sum((port) => port.endpointsTotal)}`;
}

function portHtml(port: PortReport): Html {
  const { portName, protocol, endpoints, endpointsTotal, endpointsUsed, leftOut, externalVerdict } = port;
  const traits = traitTexts(port);
  const more = endpointsTotal - endpoints.length;
  const verdicts = [
    port.internalVerdict !== 'forward' && `At the ClusterIP ${VERDICTS[port.internalVerdict]}. `,
    externalVerdict !== null && externalVerdict !== 'forward' && `From outside ${VERDICTS[externalVerdict]}. `,
  ];
  return html`<h3>${portName === '' ? protocol : `${portName}, ${protocol}`} <small class="faint">${addressTexts(port).join(', ')}</small></h3>
${leftOut !== null && html`<p class="problem">The kernel refuses it: ${leftOut}</p>`}<p class="faint">${verdicts}${countText(endpointsTotal, 'endpoint')}, ${endpointsUsed} used${traits.map((trait) => `; ${trait}`)}</p>
${
  endpoints.length > 0 &&
  html`<table class="endpoints">${endpoints.map(
    (endpoint) =>
      html`<tr><td class="mark ${endpoint.used ? 'ok' : 'none'}">${endpoint.used ? '✓' : '–'}</td><td><code>${withPort(endpoint.address, endpoint.port)}</code></td><td>${endpoint.here && 'on this node'}</td><td class="faint">${whyText(endpoint)}</td></tr>`,
  )}</table>`
}${more > 0 && html`<p class="faint">and ${more} more</p>`}`;
}

function ago(at: string, now: string): string {
  return durationText(secondsBetween(at, now));
}
