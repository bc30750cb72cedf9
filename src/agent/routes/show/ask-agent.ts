import { request } from 'node:http';
import { NodeplaneError, tryParseCidr, tryParseIp } from '../../../core/index.ts';
import { type RoutesReport, WAYS } from '../report.ts';
import { REPORT_PATH } from '../report-page.ts';

/** Whoever listens at the port may be anybody. */
const TIMEOUT_MS = 5000;
/** Ten thousand Nodes with their longest names and a few pod CIDRs each have a third of it. */
const LARGEST_ANSWER = 16 << 20;

/**
 * Asks the agent of this machine how things stand.
 *
 * @param at `127.0.0.1:10249`
 * @throws ERR_ROUTES_AGENT when nobody answers there, or not as an agent with --routes does
 */
export async function askAgent(at: string): Promise<RoutesReport> {
  let text: string;
  try {
    text = await fetchText(`http://${at}${REPORT_PATH}`);
  } catch (cause) {
    throw new NodeplaneError('ERR_ROUTES_AGENT', `Cannot ask the agent at ${at}`, { facts: { at }, cause });
  }
  const report = parse(text);
  if (report) return report;
  throw new NodeplaneError('ERR_ROUTES_AGENT', `Cannot ask the agent at ${at}: the answer is not one of nodeplane`, {
    facts: { at },
  });
}

function fetchText(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    // One time for all of it: a server that sends a byte now and then would reset a time without traffic.
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const asked = request(url, { signal, agent: false }, (response) => {
      const { statusCode = 0 } = response;
      const chunks: Buffer[] = [];
      let length = 0;
      response.on('error', failed);
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > LARGEST_ANSWER) asked.destroy(new Error(`the answer has more than ${LARGEST_ANSWER} bytes`));
      });
      response.on('end', () => {
        if (statusCode === 200) resolve(Buffer.concat(chunks).toString());
        else reject(new Error(STATUS.get(statusCode) ?? `it answers with status ${statusCode}`));
      });
    });
    const failed = (error: Error) =>
      reject(signal.aborted ? new Error(`no answer within ${TIMEOUT_MS / 1000} s`) : error);
    asked.on('error', failed);
    asked.end();
  });
}

const STATUS: ReadonlyMap<number, string> = new Map([
  [403, 'it answers clients at 127.0.0.1 and ::1 only'],
  [404, 'it runs without --routes'],
]);

function parse(text: string): RoutesReport | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isReport(value) ? value : undefined;
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const isOneOf =
  (...words: readonly string[]): Check =>
  (value) =>
    words.some((word) => word === value);
const objectOf =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(checks).every(([key, check]) => check((value as Readonly<Record<string, unknown>>)[key]));

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
const isReportObject = objectOf({ node: isText, mode: isText, families: listOf(isFamily) });

function isReport(value: unknown): value is RoutesReport {
  return isReportObject(value);
}
