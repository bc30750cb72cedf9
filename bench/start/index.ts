export { benchEmpty } from './empty.ts';
export { firstSync } from './measured-start.ts';
export { processorTimes } from './process-figures.ts';
export { benchRest } from './rest.ts';
export { benchStart } from './starts.ts';
