import type { Build } from '../agent/index.ts';

/** A `Build` as JSON, put in by the build (scripts/build.mjs); absent when running from source. */
declare const __NODEPLANE_BUILD__: string | undefined;

export const BUILD: Build =
  typeof __NODEPLANE_BUILD__ === 'undefined'
    ? { version: 'unbuilt', commit: '', date: '', tree: '' }
    : JSON.parse(__NODEPLANE_BUILD__);

export const VERSION = BUILD.version;
