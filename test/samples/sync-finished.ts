/** What the proxy tells at the end of a sync that had nothing to write; a test adds `family`, `at` and what it is about. */
export const SYNC_FINISHED = {
  kind: 'syncFinished',
  full: false,
  seconds: 0.5,
  commit: undefined,
  deltaSize: 0,
  triggerTimes: [],
  noLocalEndpoints: { internal: 0, external: 0 },
  restrictedServices: { taken: 0, refused: 0, limit: 0 },
} as const;
