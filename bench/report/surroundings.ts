import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, release, totalmem } from 'node:os';

/** What a table of figures must say beside them: the processors, and the versions of whoever took part. */
export function surroundings(): { machine: string; versions: [name: string, version: string][]; commit: string } {
  const gibibytes = Math.round(totalmem() / 2 ** 30);
  return {
    machine: `${availableParallelism()} x ${cpus()[0]?.model.trim() || 'unnamed processor'}, ${gibibytes} GiB`,
    versions: [
      // Without what the distribution calls its build.
      ['Linux', release().split('-')[0]!],
      ['Node.js', process.version],
      ['nft', firstWord(output('nft', '--version'), 'v')],
      ['iptables', firstWord(output('iptables', '--version'), 'v')],
      [
        'containernetworking-plugins',
        output('dpkg-query', '-W', '-f', '$' + '{Version}', 'containernetworking-plugins'),
      ],
    ],
    commit: output('git', 'describe', '--always', '--dirty'),
  };
}

/** What a program prints; empty where it cannot be run. */
function output(program: string, ...args: string[]): string {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return '';
  }
}

/** `nftables v1.0.6 (Lester Gooch #5)`: `1.0.6`. */
function firstWord(text: string, prefix: string): string {
  const word = text.split(/\s+/).find((each) => each.startsWith(prefix) && /\d/.test(each));
  return word?.slice(prefix.length) ?? '';
}
