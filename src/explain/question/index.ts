export { nearMisses } from './near-misses.ts';
export { parseQuestion, type WrittenQuestion } from './parse.ts';
export { type Question, QuestionError, type Source } from './question.ts';
