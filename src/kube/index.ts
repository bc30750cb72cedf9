export type { ObjectEvent, ObjectHandler, ObjectSource, SourceProblem } from './source.ts';
export * from './types.ts';
