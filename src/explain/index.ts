export type { Branch, Choice } from './choices.ts';
export {
  type End,
  type Host,
  KernelRules,
  type Origin,
  type Rules,
  type Step,
  type Walk,
  walkPacket,
} from './nft/index.ts';
export { type FirstPacket, type Interface, KnownBytes, Packet } from './packet/index.ts';
