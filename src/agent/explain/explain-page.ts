import { errorText } from '../../core/index.ts';
import type { Knowledge, WrittenQuestion } from '../../explain/index.ts';
import type { ControlPages } from '../control/control-server.ts';

export const EXPLAIN_PAGE = '/explain';

/** `GET /explain?destination=…`: what is known about a question, one after the other; `{"error":…}` when it cannot be told. */
export function explainPages(tell: (question: WrittenQuestion) => Promise<Knowledge>): ControlPages {
  let last: Promise<unknown> = Promise.resolve();
  return {
    [`GET ${EXPLAIN_PAGE}`]: async ({ query }) => {
      const turn = last.then(() => tell(writtenQuestion(query))).catch((error) => ({ error: errorText(error) }));
      last = turn;
      return { status: 200, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(await turn) };
    },
  };
}

/** A question as a query, and back: `writtenQuestion`. */
export function questionQuery(question: WrittenQuestion): URLSearchParams {
  return new URLSearchParams(Object.entries(question).filter(([, value]) => value !== undefined));
}

function writtenQuestion(query: URLSearchParams): WrittenQuestion {
  const [source, protocol] = [query.get('source') ?? undefined, query.get('protocol') ?? undefined];
  return { destination: query.get('destination') ?? '', source, protocol };
}
