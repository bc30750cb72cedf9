/** Of V8's old generation between two collections; it would be several times what lives in it (scripts/build.mjs). */
const HEAP_GROWTH = '--heap-growing-percent=25';

/**
 * When V8 optimises a function, by the major version of Node.js: after four times what it would wait for. A start with 1,000
 * Services had a hundred optimised that it had no more use for, a quarter of its processor time. With other versions V8 decides.
 */
const OPTIMISE_LATER: Readonly<Record<string, readonly string[]>> = {
  20: ['--interrupt-budget=270336'],
  24: ['--invocation-count-for-turbofan=12000', '--invocation-count-for-maglev=1600'],
};

/**
 * The flags of V8 that the agent sets when it runs. The build makes the code cache of its threads under the same: V8 takes one
 * under no others.
 */
export function agentFlags(): readonly string[] {
  const [nodeMajor = ''] = process.versions.node.split('.');
  return [HEAP_GROWTH, ...(OPTIMISE_LATER[nodeMajor] ?? [])];
}
