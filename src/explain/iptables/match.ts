import { PROTOCOLS } from '../packet/index.ts';
import type { Situation } from '../walk/index.ts';
import type { Facts } from './facts.ts';
import type { Option } from './parse-rule.ts';
import type { Truth } from './values.ts';

/** What a match is asked with. */
export interface Asked extends Situation {
  readonly facts: Facts;
  readonly options: readonly Option[];
}

/** One option of a match: holds, does not, or nobody can tell. What `!` says is not its business. */
export type OptionCheck = (option: Option, asked: Asked) => Truth;

/**
 * What a match is: a check for each option it may have, which must all hold; or a function for those whose options are more than
 * that. A match or an option that is not here is not known.
 */
export type Match = Readonly<Record<string, OptionCheck>> | ((asked: Asked) => Truth);

/** The protocols of whole numbers and of names that can be those of the packet; every other name is another protocol's. */
export function isProtocol(text: string, protocol: number): boolean {
  if (text === 'all' || text === '0') return true;
  return (Object.hasOwn(PROTOCOLS, text) ? PROTOCOLS[text as keyof typeof PROTOCOLS] : Number(text)) === protocol;
}
