import { expect, it } from 'vitest';
import { FakeServiceStore, makeNode, makeService, makeSlice } from '../../test/fakes/service-objects.ts';
import { atOnce, parseCidr, type Steps, shellWord } from '../core/index.ts';
import { type NodePlan, Planner } from '../proxy/index.ts';
import { explain } from './explain.ts';
import { type Knowledge, type KnowledgeSources, tellKnowledge } from './knowledge/index.ts';
import { parseQuestion } from './question/index.ts';

const PLAN: NodePlan = {
  localDetector: { kind: 'cidr', cidr: parseCidr('10.244.0.0/16') },
  masqueradeMark: 0x4000,
  masqueradeAll: false,
  nodePortAddresses: 'all',
  nodeIp: undefined,
};

/** What an agent would tell, of objects alone. */
async function knowledgeOf(written: string, change: Partial<KnowledgeSources> = {}, node = PLAN): Promise<Knowledge> {
  const store = new FakeServiceStore();
  store.put('shop/web', ['10.244.1.9'], { type: 'NodePort', ports: [{ name: 'http', port: 80, nodePort: 30080 }] });
  store.put('shop/api', ['10.244.1.9']);
  store.put('shop/six');
  store.slicesByService.set('shop/six', [makeSlice('shop/six', ['fd00::9'], { addressType: 'IPv6' })]);
  store.nodesByName.set(
    'n1',
    makeNode('n1', { status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] } }),
  );
  const planner = new Planner({ family: 'IPv4', nodeName: 'n1', node });
  await planner.rebuild(store);
  const sources: KnowledgeSources = {
    nodeName: 'n1',
    zone: '',
    mode: 'nftables',
    live: true,
    routes: false,
    commands: {
      status: 'nodeplane status',
      routes: 'nodeplane routes',
      explain: 'nodeplane explain',
      diff: 'nodeplane diff',
      ipamCheck: 'nodeplane ipam check',
    },
    store,
    families: [
      {
        family: 'IPv4',
        node,
        ports: planner.plan.ports,
        explain: (name) => planner.explain(name, store),
        writtenSecondsAgo: null,
        failing: null,
        drift: [],
        leftOut: new Map(),
        isUnwritten: () => false,
        problems: () => [],
      },
    ],
    trackingBefore: null,
    seen: null,
    notServed: () => undefined,
    changedSecondsAgo: () => null,
    ...change,
  };
  const steps: Steps<Knowledge> = tellKnowledge(sources, parseQuestion({ destination: written }));
  return atOnce(steps);
}

const ask = async (written: string, change?: Partial<KnowledgeSources>, node?: NodePlan) =>
  explain(parseQuestion({ destination: written }), await knowledgeOf(written, change, node), undefined);

it('says of objects alone what they forbid, and that the rest was not asked', async () => {
  expect(await ask('svc/shop/api:80')).toMatchObject({
    verdict: 'unknown',
    code: 'cannot-tell',

    notChecked: ['the kernel'],
  });
  expect(await ask('svc/shop/web:http')).toMatchObject({ verdict: 'fails', code: 'manual-endpoints' });
  expect(await ask('svc/shop/six')).toMatchObject({ verdict: 'fails', code: 'family' });
  expect(await ask('svc/shop/web:https')).toMatchObject({ verdict: 'fails', code: 'no-such-port' });
});

it('names commands as this agent is asked', async () => {
  const commands = {
    ...{ status: '', routes: '', diff: '', ipamCheck: '' },
    explain: 'nodeplane explain --agent-lock-dir /run/other',
  };
  const [remedy] = (await ask('svc/shop/wbe', { commands })).remedy;
  expect(remedy).toBe('nodeplane explain --agent-lock-dir /run/other svc/shop/web');
});

it.each([
  ['10.244.2.2', ['10.244.2.2:PORT']],
  ['pod/shop/web-1', ['pod/shop/web-1:PORT']],
  ['fd00::2', ['[fd00::2]:PORT']],
  // Brackets were forgotten.
  ['fd00:10:244:2::2:8080', ['[fd00:10:244:2::2]:8080', '[fd00:10:244:2::2:8080]:PORT']],
])('of %s without a port nothing can be told, and it is said how to ask', async (written, ways) => {
  const store = new FakeServiceStore();
  store.slicesByService.set('shop/web', [makeSlice('shop/web', [{ addresses: ['10.244.1.9'], targetRef: 'web-1' }])]);
  store.services.set('shop/web', makeService('shop/web'));
  const answer = await ask(written, { store });
  expect(answer).toMatchObject({
    verdict: 'unknown',
    code: 'cannot-tell',
    remedy: ways.map((way) => `nodeplane explain ${shellWord(way)}`),
  });
  expect(answer.cause).toContain('without a port nothing more can be said');
});

it('finds a Service by its address and by its NodePort, of either node:PORT or the address of the node', async () => {
  expect((await ask('10.96.0.10')).question.to).toContain('svc shop/web');
  for (const text of ['node:30080', '192.0.2.1:30080']) {
    expect((await ask(text)).question.to).toBe('svc shop/web:http (192.0.2.1:30080/tcp)');
  }
});

it('nodeport-address: NodePorts that do not answer at the address of the node', async () => {
  const answer = await ask('node:30080', {}, { ...PLAN, nodePortAddresses: [] });
  expect(answer).toMatchObject({ verdict: 'fails', code: 'nodeport-address' });
});

it.each(['svc/shop/web', 'svc/shop/nobody', '10.96.0.10', '10.96.0.77', 'pod/shop/web-1'])(
  'of %s nothing is told before the agent serves anything: what was written before it started goes on',
  async (destination) => {
    const cause = expect.stringContaining('the agent serves no Services yet');
    expect(await ask(destination, { families: [] })).toMatchObject({ verdict: 'unknown', cause });
  },
);

it('is plain JSON: what the agent sends is what is read', async () => {
  const knowledge = await knowledgeOf('svc/shop/web');
  expect(JSON.parse(JSON.stringify(knowledge))).toEqual(knowledge);
});

it.each([
  [undefined, 'any pod'],
  ['node', 'this node'],
  ['10.244.1.9', '10.244.1.9'],
  ['pod/shop/web-1', 'pod shop/web-1'],
])('prints who connects also where the destination is not found: %s', async (source, from) => {
  const destination = 'svc/shop/nobody';
  const { question } = explain(parseQuestion({ destination, source }), await knowledgeOf(destination), undefined);
  expect(question).toMatchObject({ from, to: 'svc shop/nobody' });
});

it('prints the pod that is asked for, known or not', async () => {
  expect((await ask('pod/shop/nobody')).question).toMatchObject({ from: 'any pod', to: 'pod shop/nobody' });
  const store = new FakeServiceStore();
  store.slicesByService.set('shop/web', [makeSlice('shop/web', [{ addresses: ['10.244.1.9'], targetRef: 'web-1' }])]);
  store.services.set('shop/web', makeService('shop/web'));
  expect((await ask('pod/shop/web-1:8080', { store })).question.to).toBe('pod shop/web-1 (10.244.1.9:8080/tcp)');
  expect((await ask('pod/shop/web-1', { store })).question.to).toBe('pod shop/web-1 (10.244.1.9)');
});
