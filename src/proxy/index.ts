export * from './observe/index.ts';
export * from './plan/index.ts';
export * from './sync/index.ts';
