export { benchRest } from './rest.ts';
export { benchStart } from './starts.ts';
