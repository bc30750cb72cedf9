import { errorText, jsonText, NodeplaneError } from '../../core/index.ts';
import { askControlPatiently, WHERE_IT_ANSWERS } from '../control/ask-control.ts';
import { NoAnswerError } from '../http/ask-agent.ts';
import { type Check, isNumber, isOneOf, isText, listOf, objectOf, orNull, parseForm } from '../http/json-form.ts';
import { agentFile } from '../standby/agent-file.ts';
import { DIFF_PAGE } from './diff-pages.ts';
import { diffText } from './diff-text.ts';
import { DIFF_SCHEMA, type DiffReport } from './report.ts';

/** A comparison of everything at 10,000 Services, by programs that read slowly, and the repair of all of it. */
const TIMEOUT_MS = 300_000;

const HANGS =
  'Somebody listens there and says nothing: the agent hangs, is stopped, or has no processor time. Look at the end of its log and at /livez; restarting it leaves the rules in place';
const ENDED = 'It ended while it answered: look at the end of its log, and ask again when it is back';

export interface ShowDiffOptions {
  /** The agent's --agent-lock-dir. */
  readonly directory: string;
  readonly repair: boolean;
  readonly json: boolean;
  /** Told now and then while the agent takes its time: a line for people. */
  readonly progress: (line: string) => void;
}

export interface ShownDiff {
  readonly stdout: string;
  readonly stderr: string;
  /** As `diff`: 0 equal, 1 different, 2 something could not be told; 69 (EX_UNAVAILABLE of sysexits.h): no agent answers. */
  readonly exitCode: 0 | 1 | 2 | 69;
}

/** `nodeplane diff`: what is meant to be in the kernel, and what is. */
export async function showDiff({ directory, repair, json, progress }: ShowDiffOptions): Promise<ShownDiff> {
  const socketPath = agentFile(directory, 'sock');
  const failed = (exitCode: 2 | 69, reason: string, remedy: string): ShownDiff => {
    const message = `Cannot ask the agent at "${socketPath}": ${reason}. ${remedy}`;
    const error = new NodeplaneError('ERR_DIFF', message);
    return { stdout: '', stderr: `nodeplane: ${error.message} (${error.code})\n`, exitCode };
  };
  let text: string;
  try {
    const method = repair ? 'POST' : 'GET';
    const waiting = (seconds: number) =>
      progress(`nodeplane: the agent has been ${repair ? 'repairing' : 'comparing'} for ${seconds} s, and is alive\n`);
    text = await askControlPatiently({ socketPath, method, path: DIFF_PAGE, timeoutMs: TIMEOUT_MS }, { waiting });
  } catch (error) {
    return failed(
      69,
      errorText(error),
      error instanceof NoAnswerError ? HANGS : isReset(error) ? ENDED : WHERE_IT_ANSWERS,
    );
  }
  const report = parseForm<DiffReport>(text, isReport);
  if (!report) return failed(2, 'the answer is not one of this version of nodeplane', WHERE_IT_ANSWERS);
  const stdout = json ? jsonText(report) : diffText(report);
  const has = (verdict: string) => report.parts.some((part) => part.verdict === verdict);
  return { stdout, stderr: '', exitCode: has('unknown') ? 2 : has('differs') ? 1 : 0 };
}

function isReset(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ECONNRESET';
}

const isDrifts = listOf(objectOf({ object: isText, difference: isOneOf('missing', 'changed', 'unexpected') }));
const isReport: Check = objectOf({
  schema: isOneOf(DIFF_SCHEMA),
  node: isText,
  mode: isText,
  takenAt: isText,
  parts: listOf(
    objectOf({
      name: isText,
      verdict: isOneOf('equal', 'differs', 'unknown'),
      reason: orNull(isText),
      total: isNumber,
      differences: isDrifts,
      repaired: isDrifts,
      repairedTotal: isNumber,
    }),
  ),
});
