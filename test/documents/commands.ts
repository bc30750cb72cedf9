import { readdirSync, readFileSync } from 'node:fs';

/** The files that name commands. */
const ROOT = new URL('../../', import.meta.url);

/** README.md and the pages of docs/. */
export const PAGES: readonly string[] = [
  'README.md',
  ...readdirSync(new URL('docs', ROOT)).map((name) => `docs/${name}`),
].filter((path) => path.endsWith('.md'));

/** A line that a reader is to type, or could. */
export interface Documented {
  /** `page:line` */
  readonly place: string;
  readonly text: string;
  /** It stands in a block of its own, and not between words. */
  readonly isFenced: boolean;
}

/** Programs whose name at the beginning of words in backquotes makes these a command. */
const PROGRAMS =
  'nodeplane kubectl npm curl ip ipset ipvsadm iptables ip6tables iptables-save nft conntrack sysctl ctr podman docker skopeo kubeadm cat wg bridge ss nstat modprobe';
/** Words that begin a line of a block that has no language. */
const FIRST_WORDS = `${PROGRAMS} cp grep for do done node export`.split(' ');
const IN_BACKQUOTES = new RegExp(
  `\`((?:(?:dist/)?(?:${PROGRAMS.replaceAll(' ', '|')})|deploy/image/build) [^\`]+)\``,
  'g',
);

/** Every command of a page, in its order; what a shell's heredoc holds is left out. */
export function documentedCommands(path: string): Documented[] {
  const found: Documented[] = [];
  let fence: string | undefined;
  let heredoc: string | undefined;
  for (const [index, line] of readFileSync(new URL(path, ROOT), 'utf8').split('\n').entries()) {
    const place = `${path}:${index + 1}`;
    const [, language] = /^ *```(\w*)/.exec(line) ?? [];
    if (language !== undefined) fence = fence === undefined ? language : undefined;
    else if (fence === undefined) {
      for (const [, text] of line.matchAll(IN_BACKQUOTES))
        found.push({ place, text: text!.replaceAll('\\|', '|'), isFenced: false });
    } else if (
      fence === 'sh' ||
      fence === 'bash' ||
      (fence === '' && /^(?:\$ )?(?:dist\/)?[a-z][\w-]* /.test(line) && FIRST_WORDS.includes(line.split(' ')[0]!))
    ) {
      if (heredoc !== undefined) {
        if (line.trim() === heredoc) heredoc = undefined;
      } else if (line.trim() !== '' && !line.trim().startsWith('#')) found.push({ place, text: line, isFenced: true });
      heredoc ??= /<<'?(\w+)'?/.exec(line)?.[1];
    }
  }
  return found;
}

/** A documented line as a shell takes it: without prompt and comment. */
export function shellLine(text: string): string {
  return text
    .replace(/^\s*\$ /, '')
    .replace(/\s#.*$/, '')
    .trim();
}

/** The commands of a line, as words; a shell's quotes, pipes and comments are understood as far as documents need them. */
export function commandsOf(text: string): string[][] {
  return shellLine(text)
    .split(/\s*(?:\|\||&&|[|;])\s*/)
    .map((part) => [...part.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, one, two, three]) => one ?? two ?? three!))
    .map((words) => words.slice(words.findIndex((word) => !/^[A-Z_]+=/.test(word))))
    .filter((words) => words.length > 0);
}
