import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { atOnce } from '../../core/index.ts';
import { applyDiff, type Chain, diffChains } from './chain-set.ts';
import { failedLine, type TableRestore, writeRestore } from './restore.ts';
import { parseSave, SaveReader, targetOf } from './save.ts';

const chain = (...rules: string[]): Chain => ({ rules, owner: `owner of ${rules[0]}` });

describe('diffChains', () => {
  const current = new Map([
    ['SAME', chain('-j A')],
    ['OTHER', chain('-j A', '-j B')],
    ['GONE', chain('-j C')],
    ['UNNAMED', chain('-j D')],
  ]);
  const edits = new Map([
    ['SAME', chain('-j A')],
    ['OTHER', chain('-j B', '-j A')],
    ['NEW', chain('-j E')],
    ['GONE', undefined],
    ['NEVER', undefined],
  ]);

  it('finds what is new, different and to be removed', () => {
    const { write, remove } = atOnce(diffChains(current, edits));
    expect([...write.keys()]).toEqual(['OTHER', 'NEW']);
    expect(remove).toEqual(['GONE']);
  });

  it('has nothing left to do once applied, and counts the rules it added', () => {
    const committed = new Map(current);
    const count = () => [...committed.values()].reduce((sum, { rules }) => sum + rules.length, 0);
    const before = count();
    const rules = atOnce(applyDiff(committed, atOnce(diffChains(committed, edits))));
    expect(rules).toEqual({ written: 3, change: count() - before });
    expect(atOnce(diffChains(committed, edits))).toEqual({ write: new Map(), remove: [] });
    expect(committed.get('UNNAMED')).toBe(current.get('UNNAMED'));
  });
});

describe('writeRestore', () => {
  const tables = [
    {
      table: 'nat',
      write: new Map([
        ['A', chain('-j B', '-j ACCEPT')],
        ['B', chain('-p tcp')],
      ]),
      remove: ['OLD'],
      insert: [{ chain: 'INPUT', rule: '-j A' }],
      withdraw: [{ chain: 'OUTPUT', rule: '-j OLD' }],
    },
  ];
  const text = (of: readonly TableRestore[]) => [...writeRestore(of)].join('');

  it('declares before rules lead to a chain, and deletes last', () => {
    expect(text(tables).split('\n')).toEqual([
      ...['*nat', '-D OUTPUT -j OLD', ':B - [0:0]', '-A B -p tcp', ':A - [0:0]', '-A A -j B', '-A A -j ACCEPT'],
      ...[':OLD - [0:0]', '-I INPUT -j A', '-X OLD', 'COMMIT', ''],
    ]);
  });

  it('goes from the last name to the first, but for chains that others lead to', () => {
    const write = new Map([
      ['A', chain('-j M')],
      ['C', chain('-p tcp -g B')],
      ['M', chain('-m comment --comment "to Z" -j ACCEPT')],
      ['Z', chain('-j M', '-j A')],
      ['B', chain('-j RETURN')],
    ]);
    const declared = text([{ table: 'nat', write, remove: ['K', 'L'], insert: [], withdraw: [] }]).matchAll(
      /^:(\S+)/gm,
    );
    expect([...declared].map(([, name]) => name)).toEqual(['M', 'A', 'Z', 'B', 'C', 'L', 'K']);
  });

  it('gives a long text in pieces of whole lines, and finds the line of any', () => {
    const rules = Array.from({ length: 5000 }, (_, n) => `-d 10.0.0.0/8 -m comment --comment "rule ${n}" -j ACCEPT`);
    const many = [
      ...tables,
      { table: 'filter', write: new Map([['C', chain(...rules)]]), remove: [], insert: [], withdraw: [] },
    ];
    const pieces = [...writeRestore(many)];
    expect(pieces.length).toBeGreaterThan(2);
    for (const piece of pieces) {
      expect(piece.length).toBeLessThan(70_000);
      expect(piece.endsWith('\n')).toBe(true);
    }
    const lines = pieces.join('').split('\n');
    expect(lines.slice(-3)).toEqual([`-A C ${rules.at(-1)}`, 'COMMIT', '']);
    expect(failedLine(`line ${lines.length - 2} failed`, many)).toMatchObject({
      table: 'filter',
      chain: 'C',
      line: lines.at(-3),
    });
  });

  it.each([
    ['iptables-restore: line 4 failed', '-A B -p tcp'],
    ['Bad argument\nError occurred at line: 6\nTry more', '-A A -j B'],
    ['iptables-restore v1.8.9 (nf_tables): \nline 10: CHAIN_DEL failed (Device or resource busy): chain OLD', '-X OLD'],
    ['no idea', undefined],
    ['line 99 failed', undefined],
  ])('finds the line that "%s" means', (stderr, line) => {
    expect(failedLine(stderr, tables)?.line).toBe(line);
  });

  it('knows whom a line belongs to', () => {
    expect(failedLine('line 4 failed', tables)).toEqual({
      line: '-A B -p tcp',
      table: 'nat',
      chain: 'B',
      owner: 'owner of -p tcp',
    });
  });
});

describe('parseSave', () => {
  it('reads IPv6 addresses alike, however the C library prints those that could be IPv4', () => {
    const rules = (rule: string) =>
      atOnce(parseSave(`*nat\n:X - [0:0]\n-A X ${rule}\nCOMMIT\n`))
        .get('nat')!
        .get('X')!.rules;
    const musl = '-s ::8000:0/::8000:0 ! -d ::8000:0/::8000:0 -j RETURN';
    expect(rules('-s ::128.0.0.0/::128.0.0.0 ! -d ::128.0.0.0/::128.0.0.0 -j RETURN')).toEqual([musl]);
    expect(rules(musl)).toEqual([musl]);
  });

  it('reads tables, chains and rules', () => {
    const tables = atOnce(
      parseSave(
        '# remark\n*nat\n:INPUT ACCEPT [1:2]\n:X - [0:0]\n[5:6] -A ignored\n-A X -j Y\n-A X\n-A INPUT -s 1.1.1.1/32 -j X\nCOMMIT\n*filter\nCOMMIT\n',
      ),
    );
    expect([...tables.keys()]).toEqual(['nat', 'filter']);
    expect(tables.get('nat')!.get('X')).toEqual({ builtIn: false, rules: ['-j Y', ''] });
    expect(tables.get('nat')!.get('INPUT')).toEqual({ builtIn: true, rules: ['-s 1.1.1.1/32 -j X'] });
  });

  it('takes no memory for rules that are known', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const texts = (n: number) => [`-d 10.0.${n >> 8}.${n & 255}/32 -p tcp -m tcp --dport 80 -j ${'X'.repeat(60)}`];
    const known = new Map(Array.from({ length: 20_000 }, (_, n) => [`KUBE-SVC-${n}`, { rules: texts(n) }]));
    const bytes = (reader: SaveReader) => {
      collect();
      const before = process.memoryUsage().heapUsed;
      reader.take('*nat');
      for (let n = 0; n < known.size; n++) {
        reader.take(`:KUBE-SVC-${n} - [0:0]`);
        reader.take(`-A KUBE-SVC-${n} ${texts(n)[0]}`);
      }
      collect();
      const taken = process.memoryUsage().heapUsed - before;
      expect(reader.tables.get('nat')!.get('KUBE-SVC-7')!.rules).toEqual(texts(7));
      return taken;
    };
    expect(bytes(new SaveReader(known))).toBeLessThan(0.75 * bytes(new SaveReader()));
  });

  it.each([
    ['-j X', 'X'],
    ['-d 10.0.0.0/8 -g KUBE-VIP-10.0.0.0/8', 'KUBE-VIP-10.0.0.0/8'],
    ['-m comment --comment "a -j WRONG" -j X', 'X'],
    ['-m comment --comment "a -j WRONG"', undefined],
    ['-p tcp -j DNAT --to-destination 10.0.0.1:80', 'DNAT'],
    ['-p tcp', undefined],
  ])('finds the target of %s', (rule, target) => {
    expect(targetOf(rule)).toBe(target);
  });
});
