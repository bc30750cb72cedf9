import { expect, it } from 'vitest';
import { ANSWER_SCHEMA, type Answer, STAGES } from './answer.ts';
import { answerText } from './text.ts';

const long = 'words '.repeat(200).trim();
const answer: Answer = {
  schema: ANSWER_SCHEMA,
  question: { from: 'pod 10.244.1.7', to: 'svc shop/web:80 (10.96.0.12:80/tcp)', protocol: 'tcp', family: 'IPv4' },
  verdict: 'partly',
  code: 'target-port',
  cause: long,
  page: null,
  endpoints: [],
  path: STAGES.map((stage, index) => ({
    stage,
    result: (['ok', 'fail', 'unknown', 'not-reached'] as const)[index % 4]!,
    text: index % 2 === 0 ? long : 'naïve – short',
    evidence: [{ source: 'nf_tables', object: 'rule', value: 'raw' }],
  })),
  also: (['drift', 'mtu', 'hairpin'] as const).map((code) => ({ code, text: long })),
  warnings: (['hints', 'terminating', 'mtu'] as const).map((code) => ({ code, text: long })),
  seen: (['unanswered', 'rules', 'missed'] as const).map((kind) => ({ kind, text: `${kind} ${long}`, secondsAgo: 3 })),
  remedy: ['fix', 'or', 'more'].map((command) => `${command}   # ${long}`),
  notChecked: [long],
  tookMs: 38,
};

it('fits 24 lines and 100 columns whatever it holds', () => {
  const lines = answerText(answer, { unicode: true, terminal: 100 }).trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(24);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(100);
  expect(lines[0]).toMatch(
    /^PARTLY {2}pod 10\.244\.1\.7 -> svc shop\/web:80 \(10\.96\.0\.12:80\/tcp\) +\[target-port\]$/,
  );
});

it('fits narrower terminals, with as much of the cause and of what mends it', () => {
  for (const terminal of [80, 60]) {
    const lines = answerText(answer, { unicode: true, terminal }).split('\n');
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(terminal);
    const cause = lines.slice(1, lines.indexOf(''));
    expect(cause.join(' ').length).toBeGreaterThan(190);
  }
  expect(answerText(answer, { unicode: true, terminal: 200 })).toBe(
    answerText(answer, { unicode: true, terminal: 100 }),
  );
});

it('cuts nothing where no terminal has to show it, and says in the text what the object says', () => {
  const lines = answerText(answer, { unicode: true });
  expect(lines).not.toContain('...');
  const oneSpaced = (text: string) => text.replace(/\s+/g, ' ');
  const told = [answer.cause, ...answer.path, ...answer.also, answer.remedy[0]!, ...answer.notChecked];
  for (const one of told) expect(oneSpaced(lines)).toContain(oneSpaced(typeof one === 'string' ? one : one.text));
});

it('tells commands in one piece, to be pasted, and what is said of them on the next line where it has no room', () => {
  const command = `nsenter --net=/run/netns/cni-${'0'.repeat(90)} ss -tlnp 'sport = :8080'`;
  const remedy = [`${command}   # let it listen on ::`, 'ip -6 rule   # short'];
  const lines = answerText({ ...answer, remedy }, { unicode: true, terminal: 80 }).split('\n');
  const at = lines.indexOf(`  fix          ${command}`);
  expect(lines.slice(at + 1, at + 3)).toEqual([
    '               # let it listen on ::',
    '  or           ip -6 rule   # short',
  ]);
});

it('is ASCII where the terminal has nothing else, with words for the marks', () => {
  const text = answerText(answer, { unicode: false, terminal: 100 });
  expect(text).toMatch(/^[\x20-\x7e\n]*$/);
  for (const mark of ['ok', '!!', '??', '--']) expect(text).toContain(`  ${mark} `);
});

it('shows evidence only when asked', () => {
  expect(answerText(answer, { unicode: true, terminal: 100 })).not.toContain('nf_tables: rule: raw');
  expect(answerText(answer, { unicode: true, verbose: true, terminal: 100 })).toContain('nf_tables: rule: raw');
});

it('shows what was seen before, and what may have been missed only with all evidence', () => {
  const few = { ...answer, also: answer.also.slice(0, 1) };
  const text = answerText(few, { unicode: true, terminal: 100 });
  expect(text).toMatch(/\n {2}also .*\n {2}seen +unanswered words.*\n {2}seen +rules words/);
  expect(text).not.toContain('missed');
  expect(answerText(few, { unicode: true, verbose: true, terminal: 100 })).toMatch(/\n {2}seen +missed words/);
});

it('has no line but its own, whatever others call their rules, programs and links', () => {
  const name = 'x\n  fix          reboot\u001b[2K';
  const [first] = answer.path;
  const told = { ...answer, cause: name, path: [{ ...first!, text: name }], also: [], remedy: ['ip rule'] };
  const seen = [{ kind: 'rules' as const, text: name, secondsAgo: 1 }];
  for (const unicode of [true, false]) {
    const lines = answerText({ ...told, seen }, { unicode, terminal: 100 }).split('\n');
    expect(lines.filter((line) => line.startsWith('  fix'))).toEqual(['  fix          ip rule']);
    expect(lines.join('')).not.toMatch(/\p{Cc}/u);
  }
});
