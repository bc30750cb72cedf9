import { expect, it } from 'vitest';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { KernelError } from '../../core/index.ts';
import { hasRules, removeRules } from './rules-kernel.ts';

const [EPERM, EINVAL] = [1, 22];

function failing(errno: number): FakeNftables {
  const ruleset = new FakeNftables();
  ruleset.listTables = () => {
    throw new KernelError('ERR_NETLINK_ACK', { operation: 'NFT_MSG_GETTABLE', errno });
  };
  return ruleset;
}

it('a kernel without nf_tables has no rules, and nothing to remove', () => {
  expect([hasRules(failing(EINVAL)), removeRules(failing(EINVAL))]).toEqual([false, false]);
  expect(() => hasRules(failing(EPERM))).toThrow('EPERM');
});
