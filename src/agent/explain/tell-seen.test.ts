import { expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import type { CommitChange } from '../../netlink/nftables/index.ts';
import { TRACE_TABLE } from '../trace/trace-table.ts';
import { tellSeen } from './tell-seen.ts';

const age = (at: number) => 100 - at;
const added = (object: CommitChange['object'], table: string, name?: string): CommitChange => {
  return { verb: 'added', object, family: 'inet', table, name, count: 1 };
};
const changed = (pid: number, ...changes: CommitChange[]) => {
  return { at: 60, program: 'nft', pid, what: `change ${pid}`, changes, count: 1 };
};
const flow = (protocol: number) => {
  const [source, destination] = [parseIp('10.244.1.7'), parseIp('fd00::1')];
  const endpoint = { address: parseIp('10.244.1.9'), port: 8080 };
  return { at: 90, protocol, source, sourcePort: 4000, destination, destinationPort: 80, endpoint };
};

it('tells who changed what, but no live trace, and flows of protocols that Services have', () => {
  const evidence = {
    unanswered: () => [flow(17), flow(1), { ...flow(6), endpoint: undefined }],
    ruleChanges: () => [
      changed(7, added('table', 'fence'), added('chain', 'fence', 'gate')),
      changed(
        8,
        added('table', TRACE_TABLE),
        added('chain', TRACE_TABLE, 'early'),
        added('rule', TRACE_TABLE, 'early'),
      ),
      changed(0, added('rule', 'fence', 'gate')),
    ],
    gaps: () => ['some'],
  };
  const told = { source: '10.244.1.7', destination: 'fd00::1', port: 80, secondsAgo: 10 };
  expect(tellSeen(evidence, age)).toEqual({
    unanswered: [
      { ...told, protocol: 'UDP', endpoint: { address: '10.244.1.9', port: 8080 } },
      { ...told, protocol: 'TCP', endpoint: null },
    ],
    changes: [
      {
        secondsAgo: 40,
        by: 'nft (pid 7)',
        what: 'change 7',
        places: [
          { table: 'inet fence', name: null },
          { table: 'inet fence', name: 'gate' },
        ],
      },
      { secondsAgo: 40, by: 'the kernel', what: 'change 0', places: [{ table: 'inet fence', name: 'gate' }] },
    ],
    gaps: ['some'],
  });
});
