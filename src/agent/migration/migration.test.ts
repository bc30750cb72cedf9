import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { preflightWorld } from '../../../test/fakes/preflight-world.ts';
import { MIGRATION_ANNOTATION, type Node, type WantedAnnotations } from '../../kube/index.ts';
import { advise } from './advice.ts';
import { type FoundOnNode, lookAtNode } from './found.ts';
import { MigrationPart } from './migration-part.ts';
import { backNote, type MigrationNote, nextNote, noteText, readNote } from './note.ts';

const KUBE_PROXY = { name: 'kube-proxy iptables', sign: 'chain' };
const FLANNEL = { name: 'flannel', sign: 'link flannel.1' };
const OURS = { name: 'nodeplane nftables', sign: 'table' };
const found = (theirs: FoundOnNode['theirs'], ours: FoundOnNode['ours'] = []): FoundOnNode => ({
  theirs,
  ours,
  unread: [],
});
const NOW = Date.parse('2026-01-02T03:04:05Z');
const note = (step: MigrationNote['step'], from = [KUBE_PROXY.name]): MigrationNote => ({
  from,
  step,
  since: '2026-01-01T00:00:00Z',
});

describe('the note', () => {
  it('remembers what was here when it is gone, and begins anew when others are back', () => {
    expect(nextNote(undefined, found([], [OURS]), NOW)).toBeUndefined();
    const first = nextNote(undefined, found([KUBE_PROXY]), NOW)!;
    expect(first).toEqual({ from: ['kube-proxy iptables'], step: 'taking-over', since: '2026-01-02T03:04:05Z' });
    expect(nextNote(first, found([KUBE_PROXY], [OURS]), NOW + 5000)).toEqual(first);
    expect(nextNote(first, found([FLANNEL], [OURS]), NOW + 5000)?.from).toEqual(['kube-proxy iptables', 'flannel']);
    const over = nextNote(first, found([], [OURS]), NOW + 9000)!;
    expect(over).toEqual({ from: ['kube-proxy iptables'], step: 'taken-over', since: '2026-01-02T03:04:14Z' });
    expect(nextNote(over, found([], [OURS]), NOW + 60_000)).toEqual(over);
    expect(nextNote(over, found([FLANNEL]), NOW)?.from).toEqual(['flannel']);
    const back = backNote(over, NOW + 60_000);
    expect(back).toEqual({ from: ['kube-proxy iptables'], step: 'gone-back', since: '2026-01-02T03:05:05Z' });
    expect(backNote(back, NOW + 90_000)).toEqual(back);
    expect(nextNote(back, found([KUBE_PROXY]), NOW)?.step).toBe('taking-over');
  });

  it('is read as it was written, and nonsense is none', () => {
    expect(readNote(noteText(note('taken-over')))).toEqual(note('taken-over'));
    const long = JSON.stringify({ ...note('taken-over'), from: ['x'.repeat(1000)] });
    for (const text of [undefined, '', '{', 'null', '[]', '{"from":[],"step":"x","since":"2026"}', long]) {
      expect(readNote(text)).toBeUndefined();
    }
  });
});

describe('the advice', () => {
  it.each([
    ['not begun', found([KUBE_PROXY]), undefined],
    ['not begun', found([KUBE_PROXY]), note('taking-over')],
    ['under way', found([KUBE_PROXY], [OURS]), note('taking-over')],
    ['under way', found([FLANNEL], [OURS]), note('taking-over')],
    ['taken over', found([], [OURS]), note('taken-over')],
    ['nodeplane', found([], [OURS]), undefined],
    ['gone back', found([KUBE_PROXY]), note('taken-over')],
    ['gone back', found([KUBE_PROXY]), note('gone-back')],
    ['nobody', found([]), undefined],
  ] as const)('%s: has a next step and a way back', (standing, where, said) => {
    const advice = advise(where, said);
    expect(advice.standing).toBe(standing);
    for (const texts of [advice.next, advice.back]) expect(texts.length).toBeGreaterThan(0);
    expect(advice.back.join().includes('--leave-kube-proxy')).toBe(
      where.ours.length > 0 || (said !== undefined && said.step !== 'gone-back'),
    );
  });
});

describe('what is found', () => {
  const nat = (...chains: string[]) => `*nat\n${chains.map((chain) => `:${chain} - [0:0]\n`).join('')}COMMIT\n`;

  it('is of kube-proxy until our chain is there, whatever canaries it left', async () => {
    const look = async (saves: Record<string, string>) => lookAtNode((await preflightWorld({ saves })).node, NOTHING);
    const kubeProxy = await look({ nft: nat('KUBE-SERVICES', 'KUBE-PROXY-CANARY') });
    expect(kubeProxy.theirs.map(({ name }) => name)).toEqual(['kube-proxy iptables']);
    const ours = await look({ nft: nat('KUBE-SERVICES', 'KUBE-PROXY-CANARY', 'KUBE-SEP-HAIRPIN') });
    expect(ours).toMatchObject({ theirs: [], ours: [{ name: 'nodeplane iptables' }] });
  });

  it('counts networks only where their work is ours', async () => {
    const { node } = await preflightWorld({ saves: { legacy: nat('FLANNEL-POSTRTG', 'CNI-HOSTPORT-DNAT') } });
    expect((await lookAtNode(node, NOTHING)).theirs).toEqual([]);
    const all = await preflightWorld({ flags: ['--cni', '--routes=vxlan'] });
    expect((await lookAtNode(node, all.config)).theirs).toEqual([
      { name: 'flannel', sign: 'iptables-legacy IPv4, table nat, chain FLANNEL-POSTRTG' },
      { name: 'portmap', sign: 'iptables-legacy IPv4, table nat, chain CNI-HOSTPORT-DNAT' },
    ]);
  });
});

const NOTHING = { cni: undefined, routes: undefined };

describe('the part of the agent', () => {
  const node = (annotation?: string): Node => ({
    kind: 'Node',
    metadata: { name: 'n1', namespace: '', ...(annotation && { annotations: { [MIGRATION_ANNOTATION]: annotation } }) },
  });

  function part(looks: FoundOnNode[]) {
    const clock = new FakeClock();
    const said: WantedAnnotations[] = [];
    const context = {
      config: { nodeName: 'n1' },
      clock,
      logger: pino({ level: 'silent' }),
      announcer: { want: (_owner: string, annotations: WantedAnnotations) => void said.push(annotations) },
    };
    let looked = 0;
    const migration = new MigrationPart(context, async () => looks[Math.min(looked++, looks.length - 1)]!);
    const steps = () => said.map((one) => readNote(one[MIGRATION_ANNOTATION])?.step);
    return { clock, migration, steps, said, looked: () => looked };
  }

  it('says what was here before it began, looks again until it is gone, and then no more', async () => {
    const { clock, migration, steps, looked } = part([
      found([KUBE_PROXY]),
      found([KUBE_PROXY], [OURS]),
      found([], [OURS]),
    ]);
    await migration.start();
    migration.changed({ type: 'added', object: node() });
    expect(steps()[0]).toBe('taking-over');
    await clock.advance(600_000);
    expect(steps().at(-1)).toBe('taken-over');
    expect(looked()).toBe(3);
    migration.stop();
  });

  it('goes on where an agent before it was killed', async () => {
    const { migration, said } = part([found([], [OURS])]);
    await migration.start();
    migration.changed({ type: 'added', object: node(noteText(note('taking-over'))) });
    expect(readNote(said[0]![MIGRATION_ANNOTATION])).toMatchObject({
      from: ['kube-proxy iptables'],
      step: 'taken-over',
    });
    migration.stop();
  });

  it('says nothing where nothing was', async () => {
    const { migration, said } = part([found([], [OURS])]);
    await migration.start();
    migration.changed({ type: 'added', object: node() });
    expect(said).toEqual([]);
    migration.stop();
  });
});
