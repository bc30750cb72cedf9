import type { Check } from '../check.ts';
import { ok, warning } from '../finding.ts';

const warnings: Check = {
  name: 'config.warnings',
  look({ warnings: texts }) {
    if (texts.length === 0) return ok('all that flags and file set has an effect');
    // All of them: the remedy for one is not that for another.
    return warning(
      texts.join('; '),
      'correct or leave out what is named; the agent starts, and warns of it in its log',
    );
  },
};

export const CONFIG_CHECKS: readonly Check[] = [warnings];
