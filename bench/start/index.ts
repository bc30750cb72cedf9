export { benchEmpty } from './empty.ts';
export { benchRest } from './rest.ts';
export { benchStart } from './starts.ts';
