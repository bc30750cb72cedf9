import { errorText, NodeplaneError } from '../../core/index.ts';
import { KNOWLEDGE_SCHEMA, type Knowledge, type WrittenQuestion } from '../../explain/index.ts';
import { ALIVE_WITHIN_MS, askControl, WHERE_IT_ANSWERS } from '../control/ask-control.ts';
import { isText, objectOf, parseForm } from '../http/json-form.ts';
import { agentFile } from '../standby/agent-file.ts';
import { EXPLAIN_PAGE, questionQuery } from './explain-page.ts';

/** Nobody answers, or not as an agent does. */
export class NoAgentError extends NodeplaneError {
  constructor(reason: string) {
    super(
      'ERR_EXPLAIN_AGENT',
      `Cannot ask the agent of this node: ${reason}. ${WHERE_IT_ANSWERS}. Without one, --manifests DIR reads the objects from files`,
    );
  }
}

/**
 * Asks the agent of this network namespace what it knows about a question.
 *
 * @param directory the agent's --agent-lock-dir
 * @throws NoAgentError; ERR_EXPLAIN with the agent's own words when it cannot answer
 */
export async function askKnowledge(directory: string, question: WrittenQuestion): Promise<Knowledge> {
  const socketPath = agentFile(directory, 'sock');
  const path = `${EXPLAIN_PAGE}?${questionQuery(question)}`;
  let text: string;
  try {
    // What it knows of one question it tells within milliseconds.
    text = await askControl({ socketPath, method: 'GET', path, timeoutMs: ALIVE_WITHIN_MS });
  } catch (error) {
    throw new NoAgentError(`at "${socketPath}": ${errorText(error)}`);
  }
  const knowledge = parseForm<Knowledge>(text, isKnowledge);
  if (knowledge?.schema === KNOWLEDGE_SCHEMA) return knowledge;
  const refused = parseForm<{ readonly error: string }>(text, objectOf({ error: isText }));
  throw refused
    ? new NodeplaneError('ERR_EXPLAIN', refused.error)
    : new NoAgentError('it answers in another form: another version');
}

const isKnowledge = objectOf({ schema: isText, mode: isText, node: objectOf({ name: isText }) });
