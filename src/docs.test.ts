import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ipvsMode } from './proxy/ipvs/index.ts';

const at = (path: string) => new URL(`../${path}`, import.meta.url);
const read = (path: string) => readFileSync(at(path), 'utf8');

describe('docs/security.md', () => {
  /** `path/of.test.ts`, and with `: "…"` behind it the title of a test in it. */
  const namedTest = /`((?:src|test)\/[\w/.-]+\.ts)`(?:: "([^"]+)")?/g;
  const named = [...read('docs/security.md').matchAll(namedTest)].map(
    ([, file, title]) => [file!, title ?? ''] as const,
  );

  it('names tests', () => expect(named.length).toBeGreaterThan(40));

  it.each(named)('%s is there, with: %s', (file, title) => {
    expect(existsSync(at(file))).toBe(true);
    expect(read(file)).toContain(title);
  });
});

describe('docs/architecture.md', () => {
  const answers = [...read('docs/architecture.md').matchAll(/^\| ([^|]+) \| `(src\/[\w/.-]+)` \|$/gm)];

  it('answers questions', () => expect(answers.length).toBeGreaterThanOrEqual(20));

  it.each(answers.map(([, question, file]) => [question!, file!]))('says where %s is: %s', (_, file) => {
    expect(existsSync(at(file))).toBe(true);
  });
});

/** The paths of all files and folders below these folders. */
const filesIn = (...folders: readonly string[]) =>
  folders.flatMap((folder) =>
    readdirSync(at(folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
  );

it('comments name files that are there', () => {
  const files = filesIn('src', 'test', 'bench', 'demo');
  const wrong = files
    .filter((path) => /\.(ts|c|h)$/.test(path))
    .flatMap((path) => {
      const comments = read(path).match(/(?:\/\/|^ *\/?\*).*/gm) ?? [];
      const named = comments.flatMap((comment) => comment.match(/[\w.-]+\/[\w./-]+\.ts\b/g) ?? []);
      return named.filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`))).map((name) => [path, name]);
    });
  // The form of an answer above.
  expect(wrong).toEqual([['src/docs.test.ts', 'path/of.test.ts']]);
});

describe('docs/', () => {
  const pages = [
    'README.md',
    ...readdirSync(at('docs'), { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`),
  ];
  const texts = new Map(pages.filter((path) => path.endsWith('.md')).map((path) => [path, read(path)]));
  const everything = [...texts.values()].join('\n');
  const sources = readdirSync(at('src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /(?<!\.test)\.ts$|\.c$/.test(name))
    .map((name) => read(`src/${name}`))
    .join('\n');

  /** The anchors that GitHub makes of a page's headings. */
  const anchorsOf = (text: string) =>
    [...text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      heading!
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_\- ]/gu, '')
        .replaceAll(' ', '-'),
    );

  it.each([...texts])('%s has no dead link', (path, text) => {
    const dead = [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link]) => {
      if (/^[a-z]+:/.test(link!)) return [];
      const [file = '', anchor] = link!.split('#');
      const target = file === '' ? path : new URL(file, `file:///${path}`).pathname.slice(1);
      const isThere = existsSync(at(target)) && (anchor === undefined || anchorsOf(read(target)).includes(anchor));
      return isThere ? [] : [link];
    });
    expect(dead).toEqual([]);
  });

  it('name files and folders that are there', () => {
    const folders = ['src', 'test', 'bench', 'demo', 'deploy', 'docs', 'scripts'];
    const paths = filesIn(...folders);
    const isPath = new RegExp(`^(?:${[...folders, ...readdirSync(at('src'))].join('|')})/.|\\.ts$`);
    const isThere = (name: string) => {
      // `src/` may be left out, and all folders of a file that is named alone; `…`, `*`, `<part>` and MODE stand for words.
      const pattern = name
        .replace(/\/$/, '')
        .replaceAll('.', '\\.')
        .replace(/[…*]|<\w+>|\bMODE\b/g, '[\\w-]*');
      const path = new RegExp(`^${name.includes('/') ? '(?:src/)?' : '(?:.*/)?'}${pattern}$`);
      return paths.some((one) => path.test(one));
    };
    const named = [...texts].flatMap(([page, text]) =>
      [...text.replace(/^ *```[\s\S]*?^ *```/gm, '').matchAll(/`([^`]+)`/g)]
        .flatMap(([, words]) => words!.split(/\s+/))
        .filter((word) => isPath.test(word))
        .map((name) => [page, name]),
    );
    expect(named.length).toBeGreaterThan(600);
    // The schema of an answer.
    expect(named.filter(([, name]) => !isThere(name!))).toEqual([['docs/explain.md', 'explain/v1']]);
  });

  it('have every metric', () => {
    const named = [...sources.matchAll(/'((?:nodeplane|kubeproxy)_[a-z_]+(?:total|seconds|info|[a-z]))'/g)].map(
      ([, name]) => name!,
    );
    const tables = [...sources.matchAll(/^ {2,4}((?:sync|network|proxy|drift|service|services)_[a-z_]+): \{$/gm)];
    expect(named.length).toBeGreaterThan(25);
    expect(tables.length).toBeGreaterThan(15);
    const page = read('docs/metrics.md');
    const missing = [...named, ...tables.map(([, name]) => name!)].filter((name) => !page.includes(`${name}\``));
    expect(missing).toEqual([]);
  });

  it('have every reason of Events and conditions', () => {
    const reasons = [...sources.matchAll(/(?:reason: |record\(\w+, |, )'([A-Z][a-z]+(?:[A-Z][a-z]+)+)'(?:,|\)| })/g)];
    const found = new Set(reasons.map(([, reason]) => reason!));
    for (const known of ['ServiceNotProgrammed', 'PodsNotRouted']) expect(found).toContain(known);
    const eventReasons = [...found].filter((reason) => !everything.includes(reason));
    expect(eventReasons).toEqual([]);
  });

  it('quote of log and errors only what the program says', () => {
    const words = everything.replace(/^```[\s\S]*?^```/gm, '');
    const quoted = [...words.matchAll(/`([A-Z][a-z]+ [^`]*)`/g)].map(([, text]) => text!.replace(/\s+/g, ' '));
    expect(quoted.length).toBeGreaterThan(12);
    const wrong = quoted.filter((text) => {
      // What stands between is a number, a name or a list.
      const parts = text.split(/…|\d+|, held by .*/).map((part) => part.trim());
      return !parts.every((part) => sources.includes(part));
    });
    expect(wrong).toEqual([]);
  });

  it('say which sysctls a node needs for mode ipvs', () => {
    const page = read('docs/operations.md');
    const sysctls = ipvsMode.sysctls!({ ipvs: { strictArp: true } } as never);
    const wanted = Object.entries(sysctls).map(([name, value]) => `${name.replaceAll('/', '.')}=${value}`);
    expect(wanted.length).toBeGreaterThan(4);
    expect(wanted.filter((text) => !page.includes(text))).toEqual([]);
  });

  it('name no flag of the agent that is none', () => {
    const known = new Set([...read('docs/flags.md').matchAll(/`--([\w-]+)`/g)].map(([, name]) => name!));
    expect(known.size).toBeGreaterThan(90);
    const lines = everything.match(/nodeplane agent (?:--[\w-]+(?:[ =][^\s`-][^\s`]*)? ?)+/g) ?? [];
    expect(lines.length).toBeGreaterThan(3);
    const wrong = lines
      .flatMap((line) => [...line.matchAll(/--([\w-]+)/g)].map(([, name]) => name!))
      .filter((name) => !known.has(name));
    expect(wrong).toEqual([]);
  });
});
