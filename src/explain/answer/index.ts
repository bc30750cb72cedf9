export {
  ANSWER_SCHEMA,
  type Answer,
  type AnswerEndpoint,
  type Evidence,
  exitCodeOf,
  type FurtherCause,
  type SeenBefore,
  STAGES,
  type Stage,
  type StageName,
  type StageResult,
  type Verdict,
} from './answer.ts';
export { CAUSES, type CauseCode, CODES_PAGE } from './codes.ts';
export { answerText } from './text.ts';
