import { afterAll, describe } from 'vitest';
import { removeAll } from '../lab.ts';
import { testVerdicts } from './verdict-suite.ts';

// What explain says of random and of healthy connections; in mode ipvs: test/vm/ipvs-explain-verdicts.test.ts.

const MODES = {
  nftables: ['--proxy-mode', 'nftables'],
  'iptables, legacy variant': ['--proxy-mode', 'iptables', '--iptables-variant', 'legacy'],
  'iptables, nft variant': ['--proxy-mode', 'iptables', '--iptables-variant', 'nft'],
} as const;

afterAll(removeAll);

describe.each(Object.entries(MODES))('%s', (_, flags) => testVerdicts(flags));
