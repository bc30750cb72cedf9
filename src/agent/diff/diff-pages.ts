import type { Clock, ComparedPart } from '../../core/index.ts';
import type { ControlPages } from '../control/control-server.ts';
import type { HttpAnswer } from '../http/http-listener.ts';
import { DIFF_SCHEMA, type DiffReport, type PartReport, reportPart } from './report.ts';

export const DIFF_PAGE = '/diff';

export interface DiffPagesOptions {
  readonly node: string;
  readonly mode: string;
  readonly clock: Clock;
  /** Asked for each answer. */
  readonly parts: () => readonly ComparedPart[];
}

/**
 * `GET /diff` compares, `POST /diff` repairs what differs. One part after the other, and one answer after the other: each part
 * takes turns with its own syncs. Who asks for the same as somebody before gets the same.
 */
export function diffPages(options: DiffPagesOptions): ControlPages {
  let last: Promise<unknown> = Promise.resolve();
  const underWay = new Map<boolean, Promise<HttpAnswer>>();
  const answer = (repair: boolean): Promise<HttpAnswer> => {
    const known = underWay.get(repair);
    if (known) return known;
    const made = last.then(() => answerOf(options, repair)).finally(() => underWay.delete(repair));
    underWay.set(repair, made);
    last = made.catch(() => {});
    return made;
  };
  return { [`GET ${DIFF_PAGE}`]: () => answer(false), [`POST ${DIFF_PAGE}`]: () => answer(true) };
}

async function answerOf({ node, mode, clock, parts }: DiffPagesOptions, repair: boolean): Promise<HttpAnswer> {
  const reports: PartReport[] = [];
  for (const part of parts()) reports.push(await reportPart(part, { repair }));
  const takenAt = new Date(clock.wallTime()).toISOString();
  const report: DiffReport = { schema: DIFF_SCHEMA, node, mode, takenAt, parts: reports };
  return { status: 200, headers: { 'Content-Type': 'application/json' }, body: `${JSON.stringify(report)}\n` };
}
