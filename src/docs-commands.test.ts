import { existsSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { commandsOf, documentedCommands, PAGES } from '../test/documents/commands.ts';
import { nodeplaneProgram } from './cli/program.ts';
import { parseFlags } from './config/flags/parse-flags.ts';

// Every command that README.md and docs/ name is one that there is: its subcommands, flags and files are. It is run in
// test/lab/docs/commands.test.ts.

const at = (path: string) => new URL(`../${path}`, import.meta.url);
const read = (path: string) => readFileSync(at(path), 'utf8');
const scripts = JSON.parse(read('package.json')).scripts as Readonly<Record<string, string>>;

/** A command, and why it is none; undefined: it is. */
type Look = (words: readonly string[]) => string | undefined;

/** Of the agent, each with a value that its type takes. */
const agentFlags: Look = (words) => {
  const flags = words.filter((word) => /^--[a-z]/.test(word)).map((word) => word.replace(/=.*$/s, ''));
  const unknown = flags.find((flag) => {
    try {
      parseFlags([`${flag}=`], 'nodeplane agent');
      return false;
    } catch (error) {
      return /unknown (?:shorthand )?flag/.test(String(error));
    }
  });
  return unknown === undefined ? undefined : `the agent has no flag ${unknown}`;
};

/** What of `preflight` and `migration` is not the agent's. */
const OWN: Readonly<Record<string, RegExp>> = {
  agent: /^$/,
  preflight: /^(?:-o|--output|--strict|--present-mode)(?:=|$)/,
  migration: /^(?:-o|--output)(?:=|$)/,
};

const nodeplane: Look = (words) => {
  let command: Command = nodeplaneProgram();
  let rest = words.slice(1);
  while (rest[0] !== undefined && !rest[0].startsWith('-')) {
    const sub = command.commands.find((one) => one.name() === rest[0]);
    if (!sub) {
      if (command.commands.length > 0) return `there is no "${command.name()} ${rest[0]}"`;
      if (command.registeredArguments.length === 0) return `"${command.name()}" takes no "${rest[0]}"`;
      break;
    }
    command = sub;
    rest = rest.slice(1);
  }
  const own = OWN[command.name()];
  if (own) return agentFlags(rest.filter((word) => !own.test(word)));
  const flags = rest.filter((word) => /^-{1,2}[a-z]/.test(word)).map((word) => word.replace(/=.*$/s, ''));
  const known = (flag: string) =>
    /^(?:-h|--help|--version)$/.test(flag) ||
    command.options.some(({ long, short }) => flag === long || flag === short);
  const unknown = flags.find((flag) => !known(flag));
  return unknown === undefined ? undefined : `"${command.name()}" has no flag ${unknown}`;
};

const KUBECTL_VERBS =
  /^(?:apply|annotate|delete|describe|edit|exec|get|kustomize|label|logs|rollout|set|wait|create|patch|drain|cordon|port-forward|uncordon)$/;

/** The overlay it is given is there; what applies it is test/deploy/manifests.test.ts. */
const kubectl: Look = (words) => {
  const plain = words
    .slice(1)
    .filter((word, index, all) => !word.startsWith('-') && !/^-[nlkfo]$|^--context$/.test(all[index - 1] ?? ''));
  if (plain[0] !== undefined && !KUBECTL_VERBS.test(plain[0])) return `kubectl has no verb "${plain[0]}"`;
  const overlay = words[words.indexOf('-k') + 1];
  const isOurs = words.includes('-k') && overlay?.startsWith('deploy/');
  return isOurs && !existsSync(at(`${overlay}/kustomization.yaml`)) ? `there is no overlay ${overlay}` : undefined;
};

const npm: Look = (words) => {
  const [, verb, ...rest] = words.filter((word) => !word.startsWith('--silent'));
  if (verb === 'ci' || verb === 'install') return undefined;
  const name = verb === 'run' ? rest[0] : verb;
  return name !== undefined && scripts[name] !== undefined ? undefined : `package.json has no script "${name ?? ''}"`;
};

const AGENT_PAGES =
  /^\/(?:livez|readyz|healthz|metrics|status|configz|flagz|statusz|proxyMode|routes|services|ipam|version|debug\/pprof\/(?:profile|heap))?(?:[/?].*)?$/;

/** Of the agent's two ports; others are Services'. */
const curl: Look = (words) => {
  for (const word of words) {
    const [, path] = /(?:localhost|127\.0\.0\.1):102(?:49|56)([^\s'"]*)/.exec(word) ?? [];
    if (path !== undefined && !AGENT_PAGES.test(path)) return `the agent has no page ${path}`;
  }
  return undefined;
};

const fine: Look = () => undefined;

/** The programs this looks into. */
const PROGRAMS: Readonly<Record<string, Look>> = { nodeplane, kubectl, npm, curl };
/** Others, in fenced blocks. */
const OTHERS =
  'ip ipset ipvsadm iptables ip6tables nft conntrack sysctl modprobe ctr podman docker skopeo cat cp mkdir grep for do done wg bridge node export'.split(
    ' ',
  );

function problemOf(words: readonly string[], isFenced: boolean): string | undefined {
  const program = words[0]!.replace(/^(?:\.\/)?dist\//, '');
  if (words[0]!.startsWith('deploy/') || words[0]!.startsWith('scripts/')) {
    return existsSync(at(words[0]!)) ? undefined : `there is no ${words[0]}`;
  }
  if (program === 'nodeplane-cni') return undefined;
  const look = PROGRAMS[program] ?? (OTHERS.includes(program) || !isFenced ? fine : undefined);
  if (!look) return `nobody knows "${program}": teach this test what it is`;
  const missing = words.find(
    (word) => /^(?:deploy|test|src|scripts|demo|bench)\/[\w./-]+$/.test(word) && !existsSync(at(word)),
  );
  return missing === undefined ? look(words) : `there is no ${missing}`;
}

it.each(PAGES)('%s names no command, flag or file that is none', (path) => {
  const wrong = documentedCommands(path).flatMap(({ place, text, isFenced }) =>
    commandsOf(text).flatMap((words) => {
      const problem = problemOf(words, isFenced);
      return problem === undefined ? [] : [`${place}: ${problem} (${text.trim()})`];
    }),
  );
  expect(wrong).toEqual([]);
});

it('finds commands', () => {
  const all = PAGES.flatMap(documentedCommands);
  expect(all.length).toBeGreaterThan(60);
  expect(all.filter(({ isFenced }) => isFenced).length).toBeGreaterThan(8);
});

it.each([
  ['nodeplane clean', 'there is no "nodeplane clean"'],
  ['nodeplane cleanup --cnii', 'has no flag --cnii'],
  ['nodeplane agent --manifest x', 'the agent has no flag --manifest'],
  ['nodeplane preflight --strict --proxymode=ipvs', 'the agent has no flag --proxymode'],
  ['kubectl aply -k deploy/base', 'kubectl has no verb "aply"'],
  ['kubectl apply -k deploy/overlays/none', 'there is no deploy/overlays/none'],
  ['npm run nothing', 'package.json has no script "nothing"'],
  ['curl localhost:10249/metric', 'the agent has no page /metric'],
  ['deploy/image/make', 'there is no deploy/image/make'],
  ['frobnicate', 'nobody knows "frobnicate"'],
])('would find %s', (text, problem) => {
  expect(problemOf(commandsOf(text)[0]!, true)).toContain(problem);
});
