import type { BaseChain } from '../../../netlink/nftables/index.ts';
import type { RuleBody } from './rule.ts';

/** What is in a chain. */
export interface ChainBody {
  /** Missing: a chain that others lead to. */
  readonly base?: BaseChain;
  readonly comment?: string;
  readonly rules: readonly RuleBody[];
}
