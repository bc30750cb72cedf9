import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { LoadReport } from '../test/lab/lab.ts';
import { drawBars } from './bars.ts';
import { CONNECT_LIMIT_MS, claim } from './claim.ts';
import { type Cluster, WEB_PODS, WEB_SERVICE } from './cluster.ts';
import type { Screen } from './screen.ts';

const PER_SECOND = 300;
const GOING = WEB_PODS[2];
/** Long against the 10 ms between two requests that one of three pods gets. */
const QUIET_MS = 300;
const LIMIT_MS = 2000;

/** Takes web-3 out of the manifest under load: how long until no request reaches it, and does any fail? */
export async function showEndpointRemoval(screen: Screen, { client, manifests }: Cluster): Promise<void> {
  const file = join(manifests, 'web-endpoints.yaml');
  const before = readFileSync(file, 'utf8');
  const { text, removed } = withoutEndpoint(before, GOING.ip);
  screen.heading(`${GOING.name} is taken out of web-endpoints.yaml under ${PER_SECOND} new connections a second`);
  for (const line of removed) screen.line(screen.paint('red', `- ${line}`));
  screen.line();

  screen.doing('Warming up');
  const { ip, port } = WEB_SERVICE;
  const load = await client.startLoad({ ip, port }, { perSecond: PER_SECOND, timeoutMs: CONNECT_LIMIT_MS });
  // More than a second without a change, so that the agent need not wait for its minimum interval between syncs.
  await delay(1100);
  const warm = await load.report();
  claim(answersOf(warm, GOING.name) > 0, `${GOING.name} answers before it is taken out`, warm.servers);

  screen.doing(`Saving the file, waiting for ${GOING.name} to fall silent`);
  const savedAt = Date.now();
  replaceFile(file, text);
  const silent = await untilSilent(load, savedAt);
  const silentAt = Date.now();
  await delay(700);
  const end = await load.stop();

  const lastMs = Math.max(0, (end.servers[GOING.name]?.lastStartedAt ?? 0) - savedAt);
  screen.line(`the last request to reach ${GOING.name} was begun ${lastMs} ms after the file was saved; since then:`);
  screen.line();
  drawBars(
    screen,
    WEB_PODS.map(({ name, ip }) => ({
      label: name,
      detail: ip,
      count: answersOf(end, name) - answersOf(silent, name),
      ...(name === GOING.name ? { note: 'gone' } : {}),
    })),
  );
  screen.line();
  claim(lastMs < LIMIT_MS, `No request reaches ${GOING.name} ${LIMIT_MS} ms after the change`, `${lastMs} ms`);
  claim(end.failures.length === 0, 'No request fails while the endpoint goes', end.failures.slice(0, 3));
  for (const { name } of WEB_PODS) {
    // By when a request was begun: one begun before may be answered late.
    const more = (end.servers[name]?.lastStartedAt ?? 0) > silentAt;
    claim(more === (name !== GOING.name), 'Only web-1 and web-2 answer after the change', end.servers);
  }
  screen.done(`${end.answered} requests, none failed`);
  replaceFile(file, before);
}

/** The slice without the endpoint of that address, and the lines that went: its list item up to the next one. */
export function withoutEndpoint(yaml: string, ip: string): { readonly text: string; readonly removed: string[] } {
  const kept: string[] = [];
  const removed: string[] = [];
  let inside = false;
  for (const line of yaml.split('\n')) {
    if (/^ {2}- /.test(line)) inside = line.includes(`[${ip}]`);
    else if (!line.startsWith('   ')) inside = false;
    (inside ? removed : kept).push(line);
  }
  return { text: kept.join('\n'), removed };
}

/** Waits until the pod has answered nothing for a while; the time limit only ends the wait. */
async function untilSilent(load: { report(): Promise<LoadReport> }, savedAt: number): Promise<LoadReport> {
  for (;;) {
    await delay(50);
    const report = await load.report();
    const lastAt = Math.max(savedAt, report.servers[GOING.name]?.lastAnsweredAt ?? 0);
    if (Date.now() - lastAt > QUIET_MS || Date.now() - savedAt > LIMIT_MS + QUIET_MS) return report;
  }
}

function answersOf(report: LoadReport, name: string): number {
  return report.servers[name]?.answers ?? 0;
}

/** As editors save: a reader sees the old file or the new one, never half of it. */
function replaceFile(path: string, text: string): void {
  const temporary = `${path}.new`;
  writeFileSync(temporary, text);
  renameSync(temporary, path);
}
