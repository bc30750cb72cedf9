import { afterAll, describe } from 'vitest';
import { testVerdicts } from '../lab/explain/verdict-suite.ts';
import { removeAll } from '../lab/lab.ts';

afterAll(removeAll);

describe('ipvs', () => testVerdicts(['--proxy-mode', 'ipvs']));
