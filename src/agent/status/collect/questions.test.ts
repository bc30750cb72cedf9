import { describe, expect, it } from 'vitest';
import { shellWord } from '../../../core/index.ts';
import { ownCommands } from '../own-commands.ts';
import { QUESTIONS } from '../status.ts';
import type { StatusFacts } from './facts.ts';
import { answerAll } from './questions.ts';
import type { FamilyRecord } from './recorder.ts';

const FAMILY: FamilyRecord = {
  family: 'IPv4',
  syncs: [],
  written: { at: 0, seconds: 0.002, ports: 3 },
  failing: undefined,
  verifiedAt: 0,
  unverified: undefined,
  drift: [],
  driftTotal: 0,
  leftOut: new Map(),
  problems: new Map(),
};
const GOOD: StatusFacts = {
  node: 'n1',
  version: '1.2.3',
  mode: 'iptables',
  upSeconds: 100,
  memory: 80 << 20,
  healthy: true,
  standsByFor: '',
  age: (at) => 10 - at,
  families: [FAMILY],
  api: { server: 'https://10.0.0.1:6443/', watches: [{ resource: 'services', seconds: 3 }] },
  manifests: '',
  objectProblems: [],
  services: { counts: { total: 5, troubled: 0, refused: 1, dropped: 0 }, troubled: [] },
  conntrack: { count: 10, max: 1000 },
  peers: { total: 4, wrong: 0, peers: [], problems: [], ageSeconds: 60 },
  leftRoutes: '',
  leftNetwork: '',
  addresses: { ranges: [], lacking: '' },
  pods: { lacks: '', elsewhere: '', obstacles: [], differences: [] },
  changes: { count: 7, last: 5, what: 'endpoints of shop/web' },
  ports: { health: '127.0.0.1:10256', metrics: '127.0.0.1:10249' },
  commands: ownCommands({ metrics: '127.0.0.1:10249', lockDir: '/run/nodeplane', argv: [] }),
};

it('answers eight questions in their order, with a number and an age each', () => {
  const { questions, problems } = answerAll(GOOD);
  expect(problems).toEqual([]);
  expect(questions.map(({ id, verdict, value, ageSeconds }) => [id, verdict, value, ageSeconds])).toEqual([
    ['agent', 'ok', 80 << 20, 100],
    ['write', 'ok', 0.002, 10],
    ['api', 'ok', 1, 3],
    ['services', 'ok', 4, 10],
    ['rules', 'ok', 0, 10],
    ['conntrack', 'ok', 0.01, 0],
    ['nodes', 'ok', 4, 60],
    ['changes', 'ok', 7, 5],
  ]);
  expect(questions.map(({ id }) => id)).toEqual(QUESTIONS);
});

it('says why pods cannot be made, once: not at the start, nor of somebody who stands by', () => {
  const messages = (facts: Partial<StatusFacts>) =>
    answerAll({
      ...GOOD,
      pods: { ...GOOD.pods, lacks: '3 pods are not connected to "cni0"', obstacles: [], differences: [] },
      ...facts,
    }).problems.map(({ message }) => message);
  expect(messages({})).toEqual(['Pods cannot be made: 3 pods are not connected to "cni0"']);
  expect(messages({ upSeconds: 20 })).toEqual([]);
  expect(messages({ standsByFor: 'process 7 (nodeplane)' })).toEqual([]);
  expect(messages({ addresses: { ranges: [], lacking: 'no podCIDRs' } })).toEqual([
    'New pods get no address: no podCIDRs',
  ]);
});

it('says what others have in the way of packets of pods', () => {
  const { questions, problems } = answerAll({
    ...GOOD,
    pods: { ...GOOD.pods, obstacles: ['Chain "x" refuses them'], differences: [] },
  });
  expect(problems).toEqual([{ question: 'rules', message: 'Chain "x" refuses them', command: 'nodeplane preflight' }]);
  expect(questions.find(({ id }) => id === 'rules')).toMatchObject({ verdict: 'problem', value: 0 });
});

it('says when the runtime makes pods by the configuration of somebody else', () => {
  const { problems } = answerAll({ ...GOOD, pods: { ...GOOD.pods, elsewhere: 'the runtime takes "05-x.conf"' } });
  const message = 'New pods get another network: the runtime takes "05-x.conf"';
  expect(problems).toEqual([{ question: 'agent', message, command: 'nodeplane preflight' }]);
});

it('has no problem while another agent works', () => {
  const { questions, problems } = answerAll({
    ...GOOD,
    healthy: false,
    families: [],
    standsByFor: 'process 7 (nodeplane)',
  });
  expect(problems).toEqual([]);
  expect(questions[0]!.detail).toBe(
    'stands by: process 7 (nodeplane) works on this node, version 1.2.3, mode iptables',
  );
  expect(questions.find(({ id }) => id === 'nodes')).toMatchObject({
    verdict: 'none',
    detail: 'another agent looks after them',
  });
});

describe('a problem', () => {
  const PEER = { node: 'n2', family: 'IPv4', way: '', podCidrs: [], problem: 'no route', lastChange: '' } as const;
  const hostile = { where: 'services', object: "Service a/b'; reboot", message: 'odd' };

  it.each<[string, Partial<StatusFacts>, RegExp, RegExp]>([
    ['agent', { healthy: false }, /does not keep up/, /10256\/healthz/],
    [
      'agent',
      { healthy: false, ports: { health: '[::1]:11256', metrics: '' } },
      /does not keep up/,
      /^curl -s \[::1\]:11256\/healthz$/,
    ],
    ['agent', { healthy: false, families: [] }, /does not serve Services/, /10256\/healthz/],
    ['agent', { addresses: { ranges: [], lacking: 'no podCIDRs' } }, /no address: no podCIDRs/, /^nodeplane ipam$/],
    [
      'write',
      { families: [{ ...FAMILY, failing: { since: 4, reason: 'writing failed: E' } }] },
      /for 6 s now, writing/,
      /failures/,
    ],
    [
      'api',
      { api: { ...GOOD.api!, watches: [{ resource: 'services', seconds: 700 }] } },
      /services for 11 min/,
      /10\.0\.0\.1:6443\/readyz$/,
    ],
    [
      'api',
      { objectProblems: [{ where: 'services', message: 'Cannot be read: ECONNREFUSED', unread: true }] },
      /^services: Cannot be read: ECONNREFUSED$/,
      /10\.0\.0\.1:6443\/readyz$/,
    ],
    ['api', { api: { ...GOOD.api!, watches: [] } }, /not heard yet/, /10\.0\.0\.1:6443\/readyz$/],
    [
      'api',
      { objectProblems: [{ where: 'services', message: 'No name: 1' }] },
      /No name/,
      /^kubectl get services -A -o yaml$/,
    ],
    ['api', { objectProblems: [hostile] }, /odd; its last good/, /^kubectl get Service -n a 'b'\\''; reboot' -o yaml$/],
    [
      'api',
      { api: undefined, manifests: '/m', objectProblems: [{ where: 'a b.yaml:7', message: 'odd' }] },
      /odd/,
      /^less \+7 '\/m\/a b\.yaml'$/,
    ],
    [
      'api',
      {
        api: undefined,
        manifests: '/m',
        objectProblems: [{ where: 'b.yaml:7', object: 'Service a/b', field: 'spec.x', message: 'odd', inForce: true }],
      },
      /^Probably not meant: b\.yaml:7: Service a\/b spec\.x: odd$/,
      /^less \+7 \/m\/b\.yaml$/,
    ],
    [
      'services',
      {
        services: { ...GOOD.services, troubled: ['shop/web'] },
        families: [
          {
            ...FAMILY,
            leftOut: new Map([['shop/web:/TCP', { key: 'shop/web:/TCP', name: 'shop/web', reason: 'ENOSPC' }]]),
          },
        ],
      },
      /shop\/web is not programmed in IPv4: ENOSPC/,
      /^nodeplane services shop\/web$/,
    ],
    [
      'rules',
      { families: [{ ...FAMILY, drift: ['IPv4: chain X is missing'], driftTotal: 1 }] },
      /chain X is missing/,
      /^iptables-save/,
    ],
    [
      'rules',
      {
        mode: 'nftables',
        families: [{ ...FAMILY, family: 'IPv6', drift: ['IPv6: chain X is missing'], driftTotal: 1 }],
      },
      /chain X is missing/,
      /^nft list table ip6 nodeplane$/,
    ],
    ['rules', { families: [{ ...FAMILY, unverified: 'EPERM' }] }, /cannot be read back: EPERM/, /^iptables-save/],
    ['conntrack', { conntrack: { count: 95, max: 100 } }, /95 % full/, /nf_conntrack_max/],
    ['nodes', { peers: { ...GOOD.peers!, wrong: 1, peers: [PEER] } }, /n2, IPv4: no route/, /^nodeplane routes$/],
    ['agent', { leftNetwork: '/etc/cni/net.d/10-nodeplane.conflist' }, /neither made nor removed/, /^ls -l \/etc\/cni/],
    ['nodes', { peers: undefined, leftRoutes: 'device nodeplane-v4' }, /still here.*nodeplane-v4/, /--routes-only$/],
  ])('of %s is told with the command that tells more: %#', (id, facts, message, command) => {
    const { questions, problems } = answerAll({ ...GOOD, ...facts });
    expect(questions.filter(({ verdict }) => verdict === 'problem').map((one) => one.id)).toEqual([id]);
    expect(problems).toHaveLength(1);
    expect(problems[0]!.question).toBe(id);
    expect(problems[0]!.message).toMatch(message);
    expect(problems[0]!.command).toMatch(command);
  });
});

describe('of very many problems', () => {
  it('are told some of the mistakes in objects, counted all, and objects once each', () => {
    const objectProblems = Array.from({ length: 24 }, (_, i) => ({
      where: `bad.yaml:${i + 1}`,
      object: `Service shop/b${i % 6}`,
      message: 'odd',
    }));
    const { questions, problems, problemsTotal } = answerAll({
      ...GOOD,
      api: undefined,
      objectProblems: [...objectProblems, { where: 'bad.yaml', message: 'There are 5 more mistakes', others: 3 }],
    });
    expect(questions[2]!.detail).toBe('objects come from a directory of manifests, 9 objects cannot be read');
    expect([problems.length, problemsTotal]).toEqual([10, 25]);
  });

  it('are counted all differences of the kernel', () => {
    const families = [{ ...FAMILY, drift: ['IPv4: chain X is missing'], driftTotal: 300 }];
    const { questions, problemsTotal } = answerAll({ ...GOOD, families });
    expect([questions[4]!.figure, problemsTotal]).toEqual(['300', 300]);
  });

  it('are counted all Services and nodes', () => {
    const peers = { ...GOOD.peers!, wrong: 300, peers: [] };
    const services = { counts: { ...GOOD.services.counts, troubled: 70 }, troubled: ['a/b'] };
    expect(answerAll({ ...GOOD, peers, services }).problemsTotal).toBe(370);
  });
});

it.each([
  ['shop/web', 'shop/web'],
  ['', "''"],
  ['-rf', "'-rf'"],
  ['a b', "'a b'"],
  ["$(reboot)'", `'$(reboot)'\\'''`],
])('%s is one word for a shell', (text, word) => expect(shellWord(text)).toBe(word));
