import { type HttpAnswer, type HttpRequest, textAnswer } from './http-listener.ts';

// The debugging pages /flagz and /statusz of Kubernetes components (KEP-4828, KEP-4827), for people: text alone. The
// machine-readable forms, which must be asked for with exact media type parameters, are answered 406.

/** What /statusz tells. */
export interface StatuszFacts {
  /** As on the command line: `kube-proxy`. */
  readonly component: string;
  /** Calendar time: milliseconds since the epoch. */
  readonly startedAt: number;
  readonly upMs: number;
  /** Without a leading `v`. */
  readonly version: string;
  /** Of the runtime, as `process.version`. */
  readonly nodeVersion: string;
  /** The paths of this server. */
  readonly paths: readonly string[];
}

const WARNING =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.';

/** /flagz: every flag as it was given or by default, sorted by name; /configz has what a file says. */
export function flagzPage(component: string, flags: Readonly<Record<string, string>>): string {
  const names = Object.keys(flags).sort();
  return `\n${component} flags\n${WARNING}\n\n${names.map((name) => `${name}=${flags[name]}\n`).join('')}`;
}

/** /statusz: what runs and since when. */
export function statuszPage({ component, startedAt, upMs, version, nodeVersion, paths }: StatuszFacts): string {
  const lines = [
    `Started: ${formatUnixDate(startedAt)}`,
    `Up: ${formatUptime(upMs)}`,
    `Node.js version: ${nodeVersion}`,
    `Binary version: ${version}`,
    `Paths: ${[...paths].sort().join(' ')}`,
  ];
  return `\n${component} statusz\n${WARNING}\n\n${lines.join('\n')}\n`;
}

/** Answers with text if the client takes text, as browsers and curl do. */
export function negotiateText({ headers }: Pick<HttpRequest, 'headers'>, body: () => string): HttpAnswer {
  const accepted = (headers.accept ?? '*/*').split(',').map((range) => range.split(';', 1)[0]!.trim().toLowerCase());
  if (accepted.some((type) => ['*/*', 'text/*', 'text/plain'].includes(type))) return textAnswer(200, body());
  return textAnswer(406, 'This page is served as text/plain only\n');
}

/** As Go's time.UnixDate: `Fri Nov  6 15:21:10 UTC 2026`. */
function formatUnixDate(ms: number): string {
  const [weekday, day, month, year, time] = new Date(ms).toUTCString().replace(',', '').split(' ');
  return `${weekday} ${month} ${String(Number(day)).padStart(2)} ${time} UTC ${year}`;
}

function formatUptime(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const pad = (value: number) => String(value).padStart(2, '0');
  return `${Math.floor(seconds / 3600)} hr ${pad(Math.floor(seconds / 60) % 60)} min ${pad(seconds % 60)} sec`;
}
