export { Draws, withDrawn } from './draws.ts';
export type { Origin, Start, Walk } from './journey.ts';
export type { Outcome } from './outcome.ts';
export type { BridgePort, Hook, Host, RuleSource, Situation, Station, StationResult, Step } from './source.ts';
export { IPS, type Manipulation, masquerade, type NewEnds, redirect, translate } from './translate.ts';
export { type Chains, walkChain } from './walk-chain.ts';
export { type Crossing, walkNeighbourMessage } from './walk-neighbour.ts';
export {
  type Flow,
  type Later,
  type LaterPacket,
  walkAnswer,
  walkInvalidAnswer,
  walkNext,
  walkPacket,
  walkTooBig,
} from './walk-packet.ts';
