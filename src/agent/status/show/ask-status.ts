import { NodeplaneError } from '../../../core/index.ts';
import { askAgentFor } from '../../http/ask-agent.ts';
import {
  type Check,
  isBoolean,
  isNumber,
  isOneOf,
  isText,
  listOf,
  objectOf,
  orNull,
  parseForm,
} from '../../http/json-form.ts';
import type { ServiceView } from '../collect/service-index.ts';
import { QUESTIONS, STATUS_SCHEMA, type Status } from '../status.ts';
import { STATUS_PATH } from '../status-page.ts';

/**
 * Asks the agent of this machine how the node stands.
 *
 * @param at its metrics port, `127.0.0.1:10249`, or the address of --status-bind-address
 * @throws ERR_STATUS_AGENT when nobody answers there, or not as an agent does
 */
export async function askStatus(at: string, { query, page }: ServiceView): Promise<Status> {
  const failure = (reason: string, cause?: unknown) =>
    new NodeplaneError(
      'ERR_STATUS_AGENT',
      `Cannot ask the agent at ${at}${reason}. Does it run on this node, with its metrics port there? What it programmed stays in force. Look at its log, or name its port with --address`,
      { facts: { at }, cause },
    );
  const search = new URLSearchParams({ format: 'json', q: query, page: String(page) });
  let text: string;
  try {
    text = await askAgentFor(
      `http://${at}${STATUS_PATH}?${search}`,
      'it has no such page: it is older than this program',
    );
  } catch (cause) {
    throw failure('', cause);
  }
  const status = parseForm<Status>(text, isStatus);
  if (!status) throw failure(': the answer is not one of this version of nodeplane');
  return status;
}

const VERDICTS = isOneOf('forward', 'reject', 'drop');
const POLICY = isOneOf('Cluster', 'Local');
const FAMILY = isOneOf('IPv4', 'IPv6');

const isQuestion = objectOf({
  id: isOneOf(...QUESTIONS),
  title: isText,
  verdict: isOneOf('ok', 'problem', 'none'),
  figure: isText,
  detail: isText,
  ageSeconds: orNull(isNumber),
});
const isEndpoint = objectOf({
  address: isText,
  port: isNumber,
  here: isBoolean,
  used: isBoolean,
  cluster: orNull(isText),
  local: orNull(isText),
});
const isPort = objectOf({
  family: FAMILY,
  portName: isText,
  protocol: isOneOf('TCP', 'UDP', 'SCTP'),
  clusterIp: isText,
  port: isNumber,
  nodePort: isNumber,
  externalIps: listOf(isText),
  loadBalancerVips: listOf(isText),
  sourceRanges: listOf(isText),
  internalPolicy: POLICY,
  externalPolicy: POLICY,
  internalVerdict: VERDICTS,
  externalVerdict: orNull(VERDICTS),
  affinitySeconds: isNumber,
  leftOut: orNull(isText),
  endpointsTotal: isNumber,
  endpointsUsed: isNumber,
  endpoints: listOf(isEndpoint),
});
const isService = objectOf({
  name: isText,
  lastChange: orNull(isText),
  problems: listOf(isText),
  ports: listOf(isPort),
});

/** Of what the terminal shows; the rest is passed on as it is. */
const isStatus: Check = objectOf({
  schema: isOneOf(STATUS_SCHEMA),
  node: isText,
  version: isText,
  mode: isText,
  takenAt: isText,
  questions: listOf(isQuestion),
  problems: listOf(objectOf({ message: isText, command: isText })),
  problemsTotal: isNumber,
  ruleChanges: listOf(objectOf({ at: isText, what: isText, count: isNumber, program: isText, pid: isNumber })),
  services: objectOf({
    total: isNumber,
    query: isText,
    matched: isNumber,
    page: isNumber,
    pages: isNumber,
    services: listOf(isService),
  }),
});
