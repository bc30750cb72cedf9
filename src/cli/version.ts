/** Put in by the build (scripts/build.mjs); absent when running from source. */
declare const __NODEPLANE_VERSION__: string | undefined;

export const VERSION = typeof __NODEPLANE_VERSION__ === 'undefined' ? 'unbuilt' : __NODEPLANE_VERSION__;
