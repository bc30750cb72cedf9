import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import type { Host } from '../host.ts';

const PROGRAM = fileURLToPath(new URL('../../../.cache/prometheus/usr/bin/prometheus', import.meta.url));
const URL_INSIDE = 'http://127.0.0.1:9090';

/** A series and its latest value. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Debian's Prometheus at work on a node. */
export interface LivePrometheus {
  /** The samples of an instant query, now. Throws with Prometheus' words when it does not take the query. */
  query(expression: string): Promise<Sample[]>;
  /** What it has said so far. */
  output(): string;
  stop(): void;
}

/** What is scraped: by job, `host:port`, with labels that a relabelling would give. */
export interface ScrapedJob {
  readonly job: string;
  readonly target: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * Starts Prometheus in the namespace of a node; it scrapes every two seconds, which is also the time an answer
 * may take: machines that run tests are busy.
 *
 * @param folder for its configuration and data
 */
export function startPrometheus(node: Host, folder: string, jobs: readonly ScrapedJob[]): LivePrometheus {
  if (!existsSync(PROGRAM)) throw new Error(`Cannot find ${PROGRAM}: run scripts/setup`);
  const config = join(folder, 'prometheus.yml');
  const scrape_configs = jobs.map(({ job, target, labels = {} }) => ({
    job_name: job,
    scrape_interval: '2s',
    scrape_timeout: '2s',
    static_configs: [{ targets: [target], labels }],
  }));
  writeFileSync(config, stringify({ scrape_configs }));
  const flags = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, 'prometheus')}`,
    '--web.listen-address=127.0.0.1:9090',
  ];
  const said: string[] = [];
  const child: ChildProcess = spawn('ip', ['netns', 'exec', node.namespace.name, PROGRAM, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => said.push(String(chunk)));
  return {
    async query(expression) {
      const { body } = await node.httpGet(`${URL_INSIDE}/api/v1/query?query=${encodeURIComponent(expression)}`);
      const answer = JSON.parse(body) as {
        readonly error?: string;
        readonly data?: { readonly result: { metric: Record<string, string>; value: [number, string] }[] };
      };
      if (!answer.data) throw new Error(`Prometheus does not take ${expression}: ${answer.error}`);
      return answer.data.result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
    },
    output: () => said.join(''),
    stop: () => void child.kill('SIGKILL'),
  };
}

/** What stands for Grafana's `$__rate_interval` in the lab: all that happened since the start. */
export const RATE_INTERVAL = '1h';
