export { nearMisses } from './near-misses.ts';
export { parseQuestion, type WrittenQuestion } from './parse.ts';
export { type Destination, type Question, QuestionError, type Source } from './question.ts';
