import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exec } from '../src/sys/index.ts';
import type { NodePath } from './packet-nodes.ts';

/** New connections of one kind through one node. */
export interface Flow {
  readonly path: NodePath;
  /** By TCP a connection, by UDP a datagram and its answer. */
  readonly protocol: 'TCP' | 'UDP';
  /** Taken one after the other, and again from the first. */
  readonly destinations: readonly Destination[];
}

export interface Destination {
  readonly ip: string;
  readonly port: number;
}

export interface Rounds {
  readonly rounds: number;
  /** Rounds before them that do not count. */
  readonly warmUp: number;
  /** Connections of a turn, one turn a flow and round. */
  readonly each: number;
}

/**
 * Has flows take turns (connects.c), in each round in another order. Throws with the destination that does not answer.
 *
 * @returns for each flow, in their order, for each round the microseconds of each connection
 */
export type RunConnects = (flows: readonly Flow[], rounds: Rounds) => Promise<readonly (readonly number[][])[]>;

const TIMEOUT_MS = 600_000;

/**
 * Builds connects.c.
 *
 * @param folder where to
 */
export function connectRunner(folder: string): RunConnects {
  const program = join(folder, 'connects');
  // The same from dist/ as from this folder.
  const source = fileURLToPath(new URL('../bench/connects.c', import.meta.url));
  execFileSync(process.env.CC ?? 'cc', ['-O2', '-o', program, source]);
  return async (flows, { rounds, warmUp, each }) => {
    const args = [String(warmUp + rounds), String(each)];
    const { status, stdout, stderr } = await exec(program, args, { input: lines(flows), timeoutMs: TIMEOUT_MS });
    if (status !== 0) throw new Error(`Connections failed: ${stderr}`);
    const turns = flows.map((): number[][] => []);
    for (const line of stdout.trimEnd().split('\n')) {
      const [flow, ...ns] = line.split(' ').map(Number);
      turns[flow!]!.push(ns.map((value) => value / 1000));
    }
    return turns.map((all) => all.slice(warmUp));
  };
}

function lines(flows: readonly Flow[]): string {
  const paths = [...new Set(flows.map(({ path }) => path))];
  const nodes = paths.map(({ client, server, port }) => `N ${client.path} ${server.path} ${port}`);
  const series = flows.flatMap(({ path, protocol, destinations }) => [
    `${protocol === 'TCP' ? 'T' : 'U'} ${paths.indexOf(path)}`,
    ...destinations.map(({ ip, port }) => `D ${ip} ${port}`),
  ]);
  return `${[...nodes, ...series].join('\n')}\n`;
}
