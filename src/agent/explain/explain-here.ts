import { errorText, jsonText, NodeplaneError } from '../../core/index.ts';
import {
  answerText,
  exitCodeOf,
  explain,
  type Knowledge,
  parseQuestion,
  QuestionError,
  type WrittenQuestion,
} from '../../explain/index.ts';
import { answerSettled } from './answer-settled.ts';
import { askKnowledge, NoAgentError } from './ask-knowledge.ts';

export interface ExplainOptions {
  readonly question: WrittenQuestion;
  readonly json: boolean;
  readonly verbose: boolean;
  /** The terminal shows more than ASCII. */
  readonly unicode: boolean;
  /** How wide the terminal is. @default there is none, and all of a line is told, however long */
  readonly terminal?: number | undefined;
  /** Whether packets may be sent to endpoints of other nodes. @default false */
  readonly probe?: boolean;
  /** The agent's --agent-lock-dir. */
  readonly directory: string;
  /** Without an agent: what is known otherwise, and the kernel is not read. @default the agent is asked */
  readonly offline?: (() => Promise<Knowledge>) | undefined;
}

export interface Explained {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

/** <sysexits.h> */
const [EX_USAGE, EX_UNAVAILABLE, EX_SOFTWARE] = [64, 69, 70];

/**
 * Answers a question for a command line: the agent tells what it knows, and the kernel is read by this process. Writes
 * nothing, and sends nothing but with `probe`; next hops that did not answer last it has the kernel ask for once more.
 */
export async function explainHere(options: ExplainOptions): Promise<Explained> {
  const { question: written, json, verbose, unicode, terminal, probe = false, directory, offline } = options;
  try {
    const question = parseQuestion(written);
    const answer = offline
      ? explain(question, await offline(), undefined)
      : await answerSettled({ question, probe, ask: () => askKnowledge(directory, written) });
    const stdout = json ? jsonText(answer) : answerText(answer, { unicode, verbose, terminal });
    return { stdout, stderr: '', exitCode: exitCodeOf(answer) };
  } catch (error) {
    return { stdout: '', ...failure(error) };
  }
}

function failure(error: unknown): Omit<Explained, 'stdout'> {
  const code = error instanceof NodeplaneError ? ` (${error.code})` : '';
  const text = `${errorText(error)}${code}\n`;
  if (error instanceof QuestionError) return { stderr: text, exitCode: EX_USAGE };
  if (error instanceof NoAgentError) return { stderr: text, exitCode: EX_UNAVAILABLE };
  return { stderr: `Cannot answer: ${text}`, exitCode: EX_SOFTWARE };
}
