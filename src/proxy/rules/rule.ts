/**
 * One iptables rule in parts. Each part is text as iptables-save prints it; `formatRule` puts them into its order, so
 * that what we write and what the kernel gives back can be compared as text.
 */
export interface RuleParts {
  /** `-s 10.244.0.0/16` or `! -s 10.244.0.0/16` */
  readonly source?: string | undefined;
  /** `-d 10.96.0.10/32` */
  readonly destination?: string | undefined;
  /** `-i cni0` or `! -i cni0` */
  readonly inInterface?: string | undefined;
  /** `-o lo` or `! -o lo` */
  readonly outInterface?: string | undefined;
  /** `tcp`, `udp` or `sctp` */
  readonly protocol?: string | undefined;
  /** Free text; characters that could end the argument are replaced. */
  readonly comment?: string | undefined;
  /** Further matches: `-m addrtype --dst-type LOCAL`. */
  readonly match?: string | undefined;
  /** One port (`80`) or a range (`8000:8063`) of `protocol`. */
  readonly destinationPort?: string | number | undefined;
  /** `-j KUBE-MARK-MASQ`, `-g KUBE-SVC-10.96.0.0/16`; none: the rule only counts. */
  readonly target?: string | undefined;
}

/** XT_MAX_COMMENT_LEN (linux/netfilter/xt_comment.h) is 256 with its terminating zero. */
const MAX_COMMENT = 255;

/** The rule as iptables-save prints it, without `-A CHAIN`: `-d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j ACCEPT`. */
export function formatRule(parts: RuleParts): string {
  const { source, destination, inInterface, outInterface, protocol, comment, match, destinationPort, target } = parts;
  const words: string[] = [];
  if (source) words.push(source);
  if (destination) words.push(destination);
  if (inInterface) words.push(inInterface);
  if (outInterface) words.push(outInterface);
  if (protocol) words.push('-p', protocol);
  if (comment) words.push('-m comment --comment', quote(comment));
  if (match) words.push(match);
  if (destinationPort !== undefined) words.push(`-m ${protocol} --dport ${destinationPort}`);
  if (target) words.push(target);
  // Joined, not added up: V8 keeps all the pieces of a text that was added up, and the layout keeps every rule.
  return words.join(' ');
}

/**
 * A chance as iptables-save prints it (`%.11f`): with 11 digits, of two that are as near the even one, as C does and `toFixed` does not.
 *
 * @param units of 2^-31, as the kernel keeps it (xt_statistic.h); up to 2^31
 */
export function formatChance(units: number): string {
  const [scaled, one] = [BigInt(units) * 10n ** 11n, 2n ** 31n];
  const [below, rest] = [scaled / one, 2n * (scaled % one)];
  const digits = below + (rest > one || (rest === one && below % 2n === 1n) ? 1n : 0n);
  return `${digits / 10n ** 11n}.${String(digits % 10n ** 11n).padStart(11, '0')}`;
}

/** In every jump to a proxy's chain that kube-proxy or nodeplane makes. */
export const PROXY_JUMP = /--comment "(kubernetes|kube-proxy) /;

/**
 * A comment as iptables-save quotes it: bare when it is one word of letters, digits, `_` and `-`, else in double quotes.
 * Names come from manifests nobody may have validated: whatever is not plain ASCII text becomes `_`.
 */
function quote(comment: string): string {
  const text = comment.replace(/[^\w .,;:/<>()[\]=+-]/g, '_').slice(0, MAX_COMMENT);
  return /^[\w-]+$/.test(text) ? text : `"${text}"`;
}
