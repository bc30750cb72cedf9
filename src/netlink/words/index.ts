export { NetlinkWords } from './words.ts';
