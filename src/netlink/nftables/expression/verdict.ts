import type { AttributeValues } from '../../attribute-set.ts';
import { decodeError } from '../../decode-error.ts';
import type { NFTA_DATA } from '../../uapi/nf-tables-expressions.ts';
import { VERDICTS } from '../names.ts';
import type { Verdict } from './expression.ts';

type DataValues = AttributeValues<typeof NFTA_DATA.declarations>;

/** A verdict as the attributes of NFTA_DATA. */
export function verdictData(verdict: Verdict): DataValues {
  return {
    NFTA_DATA_VERDICT: {
      NFTA_VERDICT_CODE: VERDICTS.numbers[verdict.kind] >>> 0,
      NFTA_VERDICT_CHAIN: 'chain' in verdict ? verdict.chain : undefined,
    },
  };
}

/** The verdict with a code as the kernel numbers it. Throws ERR_NETLINK_DECODE. */
export function readVerdict(code: number | undefined, chain: string | undefined): Verdict {
  if (code === undefined) throw decodeError('NFTA_VERDICT_CODE', 'it is missing');
  const kind = VERDICTS.name(code | 0);
  if (kind === undefined) throw decodeError('NFTA_VERDICT_CODE', `${code | 0} is no verdict`);
  if (kind !== 'jump' && kind !== 'goto') return { kind };
  // A chain without a name belongs to one rule (`jump { ... }`).
  return { kind, chain: chain ?? '' };
}
