export { benchHostile } from './hostile.ts';
