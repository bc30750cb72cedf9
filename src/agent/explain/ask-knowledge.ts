import { connect } from 'node:net';
import { errorText } from '../../core/index.ts';
import { KNOWLEDGE_SCHEMA, type Knowledge, type WrittenQuestion } from '../../explain/index.ts';
import { descriptorOf, peerCredentials } from '../../sys/index.ts';
import { isText, objectOf, parseForm } from '../http/json-form.ts';
import { KNOWLEDGE_SOCKET } from './knowledge-socket.ts';

/** Eight may be answered before, each in tens of milliseconds. */
const TIMEOUT_MS = 5000;
/** 1,000 endpoints of 100 ports have a third of it. */
const LARGEST_ANSWER = 64 << 20;

/** Nobody answers, or not as an agent does. */
export class NoAgentError extends Error {}

/**
 * Asks the agent of this network namespace what it knows about a question.
 *
 * @throws NoAgentError; Error with the agent's own words when it cannot answer
 */
export function askKnowledge(question: WrittenQuestion): Promise<Knowledge> {
  return new Promise((resolve, reject) => {
    const socket = connect(KNOWLEDGE_SOCKET);
    const fail = (error: unknown) => {
      socket.destroy();
      reject(new NoAgentError(errorText(error)));
    };
    socket.setTimeout(TIMEOUT_MS, () => fail(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
    socket.on('error', fail);
    let text = '';
    socket.setEncoding('utf8');
    socket.on('connect', () => {
      // An abstract name can be taken by anybody; what another user answers is worth nothing.
      const { uid } = peerCredentials(descriptorOf(socket));
      if (uid !== 0) fail(new Error(`user ${uid}, not root, answers there`));
      else socket.write(`${JSON.stringify(question)}\n`);
    });
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > LARGEST_ANSWER) fail(new Error(`the answer has more than ${LARGEST_ANSWER} bytes`));
    });
    socket.on('close', () => {
      const knowledge = parseForm<Knowledge>(text, isKnowledge);
      if (knowledge?.schema === KNOWLEDGE_SCHEMA) resolve(knowledge);
      else {
        const refused = parseForm<{ readonly error: string }>(text, objectOf({ error: isText }));
        if (refused) reject(new Error(refused.error));
        else fail(new Error(text === '' ? 'it does not answer' : 'it answers in another form: another version'));
      }
    });
  });
}

const isKnowledge = objectOf({ schema: isText, mode: isText, node: objectOf({ name: isText }) });
