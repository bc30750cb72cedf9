import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../../core/index.ts';
import {
  counter,
  drop,
  type Expression,
  jump,
  type NftChange,
  type NftRule,
  payload,
} from '../../../netlink/nftables/index.ts';
import { admissionChanges, admissionRules, admits, OUR_FORWARD, withdrawalChanges } from './forward-rules.ts';

const rules = admissionRules('net', [parseCidr('10.244.1.0/24')]);

function rule(handle: number, chain: string, expressions: readonly Expression[], comment?: string): NftRule {
  return { kind: 'rule', family: 'ip', table: 'filter', chain, handle, expressions, ...(comment && { comment }) };
}

const OUR_JUMP = rule(1, 'FORWARD', [counter, jump(OUR_FORWARD)]);
const OTHER_JUMP = rule(2, 'FORWARD', [counter, jump('DOCKER-USER')]);
const DROP_SOME = rule(3, 'FORWARD', [payload.saddr('IPv4'), counter, drop]);
const DROP_ALL = rule(4, 'FORWARD', [counter, drop]);
const REJECT_ALL = rule(5, 'FORWARD', [counter, { kind: 'reject', type: 'icmp', code: 3 }]);
const XT_REJECT = rule(6, 'FORWARD', [
  { kind: 'match', name: 'comment', revision: 0, info: new Uint8Array(256) },
  counter,
  { kind: 'target', name: 'REJECT', revision: 0, info: new Uint8Array(8) },
]);
const XT_OTHER_REJECT = rule(7, 'FORWARD', [
  { kind: 'match', name: 'mark', revision: 1, info: new Uint8Array(16) },
  counter,
  { kind: 'target', name: 'REJECT', revision: 0, info: new Uint8Array(8) },
]);
const XT_LOG = rule(8, 'FORWARD', [counter, { kind: 'target', name: 'LOG', revision: 0, info: new Uint8Array(40) }]);
const COUNT = rule(9, 'FORWARD', [counter]);
const OURS = rules.map(({ expressions, comment }, i) =>
  // As they are read back when packets went through.
  rule(
    10 + i,
    OUR_FORWARD,
    expressions.map((e) => (e.kind === 'counter' ? { ...e, packets: 7n, bytes: 99n } : e)),
    comment,
  ),
);

/** What is done about the jump: it is put at the `end`, or before a rule; `-1` removes rule 1. */
function jumpPlace(changes: readonly NftChange[]): unknown[] {
  return changes.flatMap(({ operation, object }) => {
    if (object.kind !== 'rule' || object.chain !== 'FORWARD') return [];
    if (operation === 'delete') return [-object.handle!];
    return [operation === 'insert' ? object.position : 'end'];
  });
}

describe('admissionChanges', () => {
  it.each([
    ['an empty chain', [], ['end']],
    ['jumps of others', [OTHER_JUMP], ['end']],
    ['a refusal of something', [OTHER_JUMP, DROP_SOME], ['end']],
    ['a final drop', [OTHER_JUMP, DROP_ALL], [4]],
    ['a final reject', [DROP_SOME, REJECT_ALL], [5]],
    ['a final reject of iptables', [XT_REJECT], [6]],
    ['a reject of iptables for some', [XT_OTHER_REJECT], ['end']],
    ['what refuses nothing', [XT_LOG, COUNT], ['end']],
    ['a reject that others put something behind', [REJECT_ALL, OTHER_JUMP], [5]],
    ['a jump of ours', [OUR_JUMP, DROP_ALL], []],
    ['a jump of ours at the end', [OTHER_JUMP, OUR_JUMP], []],
    ['a jump of ours that others put something behind', [OUR_JUMP, OTHER_JUMP], ['end', -1]],
    ['a jump of ours that others put something behind, before a final drop', [OUR_JUMP, DROP_SOME, DROP_ALL], [4, -1]],
    ['a jump of ours where no packet comes', [REJECT_ALL, OUR_JUMP], [5, -1]],
    [
      'jumps of ours, as a restore of saved rules leaves them',
      [OUR_JUMP, OTHER_JUMP, { ...OUR_JUMP, handle: 11 }],
      [-1],
    ],
  ])('with %s', (_, forward, place) => {
    expect(jumpPlace(admissionChanges('IPv4', { forward, ours: OURS }, rules))).toEqual(place);
  });

  it('are none when all is there, whatever the counters say', () => {
    expect(admissionChanges('IPv4', { forward: [OUR_JUMP], ours: OURS }, rules)).toEqual([]);
  });

  it('add what is missing for another network with the same subnet', () => {
    const others = admissionRules('other', [parseCidr('10.244.1.0/24')]);
    const changes = admissionChanges('IPv4', { forward: [OUR_JUMP], ours: OURS }, others);
    expect(changes.map(({ operation, object }) => `${operation} ${object.kind}`)).toEqual([
      'add chain',
      'add rule',
      'add rule',
    ]);
  });
});

describe('admits', () => {
  it.each([
    ['a jump that is not the last one', [OUR_JUMP, OTHER_JUMP], true],
    ['a jump where no packet comes', [DROP_ALL, OUR_JUMP], false],
    ['no jump', [OTHER_JUMP], false],
  ])('with %s', (_, forward, admitted) => {
    expect(admits({ forward, ours: OURS }, rules)).toBe(admitted);
    expect(admits({ forward, ours: [] }, rules)).toBe(false);
  });
});

describe('withdrawalChanges', () => {
  const summary = (changes: readonly NftChange[]) =>
    changes.map(({ operation, object }) => `${operation} ${'handle' in object ? object.handle : object.kind}`);

  it('take away the rules of the network, and with the last ones the chain', () => {
    const state = { forward: [OTHER_JUMP, OUR_JUMP], ours: OURS };
    expect(summary(withdrawalChanges('IPv4', state, 'net'))).toEqual([
      'delete 10',
      'delete 11',
      'delete 1',
      'destroy chain',
    ]);
    expect(withdrawalChanges('IPv4', state, 'ne')).toEqual([]);
    const shared = { ...state, ours: [...OURS, rule(12, OUR_FORWARD, [counter], 'nodeplane-cni other')] };
    expect(summary(withdrawalChanges('IPv4', shared, 'net'))).toEqual(['delete 10', 'delete 11']);
  });

  it('are none when there is nothing, and the rest when somebody emptied the chain', () => {
    expect(withdrawalChanges('IPv4', { forward: [OTHER_JUMP], ours: [] }, 'net')).toEqual([]);
    expect(summary(withdrawalChanges('IPv4', { forward: [OUR_JUMP], ours: [] }, 'net'))).toEqual([
      'delete 1',
      'destroy chain',
    ]);
  });
});
