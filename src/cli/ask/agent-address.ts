import { InvalidArgumentError } from 'commander';
import { formatBindAddress, parseBindAddress } from '../../config/index.ts';

/**
 * Reads where the agent is to be asked: `ADDRESS:PORT`, `[ADDRESS]:PORT`, or `localhost` in place of the address. Other names are
 * refused: a resolver that does not answer would keep the command waiting.
 *
 * @throws InvalidArgumentError
 */
export function readAgentAddress(text: string): string {
  const address = parseBindAddress(text.replace(/^localhost:/, '127.0.0.1:'));
  if (!address) throw new InvalidArgumentError('It has to be ADDRESS:PORT, as 127.0.0.1:10249 or [::1]:10249.');
  return formatBindAddress(address);
}
