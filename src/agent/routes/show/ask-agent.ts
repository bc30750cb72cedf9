import { NodeplaneError, tryParseCidr, tryParseIp } from '../../../core/index.ts';
import { askAgentFor } from '../../http/ask-agent.ts';
import { type Check, isOneOf, isText, listOf, objectOf, orNull, parseForm } from '../../http/json-form.ts';
import { type RoutesReport, WAYS } from '../report.ts';
import { REPORT_PATH } from '../report-page.ts';

/**
 * Asks the agent of this machine how things stand.
 *
 * @param at `127.0.0.1:10249`
 * @throws ERR_ROUTES_AGENT when nobody answers there, or not as an agent with --routes does
 */
export async function askAgent(at: string): Promise<RoutesReport> {
  const failure = (reason: string, cause?: unknown) =>
    new NodeplaneError(
      'ERR_ROUTES_AGENT',
      `Cannot ask the agent at ${at}${reason}. Does it run on this node, with its metrics port there? What it programmed stays in force. Look at its log, or name its port with --agent`,
      { facts: { at }, cause },
    );
  let text: string;
  try {
    text = await askAgentFor(`http://${at}${REPORT_PATH}`, 'it runs without --routes');
  } catch (cause) {
    throw failure('', cause);
  }
  const report = parseForm<RoutesReport>(text, isReport);
  if (!report) throw failure(': the answer is not one of nodeplane');
  return report;
}

const isIp: Check = (value) => typeof value === 'string' && tryParseIp(value) !== undefined;
const isCidr: Check = (value) => typeof value === 'string' && tryParseCidr(value) !== undefined;
const isWay = objectOf({
  mode: isOneOf(...Object.keys(WAYS)),
  gateway: orNull(isIp),
  address: isIp,
  podCidrs: listOf(isCidr),
});
const isNode = objectOf({ name: isText, way: orNull(isWay), leftOut: orNull(isText), lastChange: isText });
const isFamily = objectOf({
  family: isOneOf('IPv4', 'IPv6'),
  problem: orNull(isText),
  total: Number.isInteger,
  nodes: listOf(isNode),
});
const isReport = objectOf({ node: isText, mode: isText, families: listOf(isFamily) });
