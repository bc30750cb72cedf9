import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** One call of a plugin. */
export interface PluginCall {
  readonly program: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: object;
}

/** Plugins called one after the other, each with the result of the one before it. */
export type PluginChain = readonly PluginCall[];

/** What calling chains took and gave. */
export interface PluginRuns {
  /** Milliseconds from the start of the first to the end of the last. */
  readonly totalMs: number;
  /** Of each chain, in their order, what its last plugin printed. */
  readonly outputs: readonly string[];
  /** Milliseconds of each chain, in their order. */
  readonly eachMs: readonly number[];
}

/** Runs chains, `lanes` at a time, in the network namespace of this thread. Throws with a plugin's words. */
export type RunChains = (chains: readonly PluginChain[], lanes: number) => PluginRuns;

/**
 * Builds run-plugins.c, with the C compiler that the plugin of the host was built with.
 *
 * @param folder where to
 */
export function pluginRunner(folder: string): RunChains {
  const program = join(folder, 'run-plugins');
  // The same from dist/ as from this folder.
  const source = fileURLToPath(new URL('../bench/run-plugins.c', import.meta.url));
  execFileSync(process.env.CC ?? 'cc', ['-O2', '-o', program, source]);
  return (chains, lanes) => {
    const input = chains.map(jobLines).join('');
    const options = { input, encoding: 'utf8', maxBuffer: 256 << 20 } as const;
    return readRuns(execFileSync(program, [String(lanes)], { ...options, stdio: ['pipe', 'pipe', 'pipe'] }));
  };
}

function jobLines(chain: PluginChain): string {
  const lines = chain.flatMap(({ program, env, config }) => [
    `P${program}`,
    `I${JSON.stringify(config)}`,
    ...Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [`E${name}=${value}`])),
  ]);
  return `${[...lines, 'X'].join('\n')}\n`;
}

function readRuns(text: string): PluginRuns {
  const outputs: string[] = [];
  const eachMs: number[] = [];
  let at = 0;
  for (;;) {
    const end = text.indexOf('\n', at);
    const [first, length, ns] = text.slice(at, end).split(' ').map(Number) as [number, number?, number?];
    if (length === undefined || ns === undefined) return { totalMs: first / 1e6, outputs, eachMs };
    eachMs[first] = ns / 1e6;
    outputs[first] = text.slice(end + 1, end + 1 + length);
    at = end + 2 + length;
  }
}
