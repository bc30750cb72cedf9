// nf_tables as `nft` prints it: for people, and for tests. An entrance of its own, so that programs that print nothing go without.
export { changeText, KnownSets } from './change-text.ts';
export { NftMessageReader } from './message-text.ts';
export { baseText, commentLines, elementTexts, setBody, setWord } from './object-text.ts';
export { ruleText } from './rule-text.ts';
export { refusalText } from './statement-text.ts';
