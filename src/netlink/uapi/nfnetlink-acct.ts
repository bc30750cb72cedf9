// <linux/netfilter/nfnetlink_acct.h>: named counters that rules add to. Values are in network byte order.
import { attributeSet } from '../attribute-set.ts';

export const NFNL_SUBSYS_ACCT = 7;

export const NFNL_MSG_ACCT_NEW = 0;
export const NFNL_MSG_ACCT_GET = 1;

export const NFACCT_ATTRIBUTES = attributeSet('NFACCT', {
  NFACCT_NAME: [1, 'string'],
  /** be64 */
  NFACCT_PKTS: [2, 'bytes'],
  /** be64 */
  NFACCT_BYTES: [3, 'bytes'],
});
