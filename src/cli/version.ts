import type { Build } from '../agent/index.ts';

/** Put in by the build (scripts/build.mjs); absent when running from source. */
declare const __NODEPLANE_BUILD__: Build | undefined;

export const BUILD: Build =
  typeof __NODEPLANE_BUILD__ === 'undefined'
    ? { version: 'unbuilt', commit: '', date: '', tree: '' }
    : __NODEPLANE_BUILD__;

export const VERSION = BUILD.version;
