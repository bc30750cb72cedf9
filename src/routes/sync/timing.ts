/** Time between two comparisons with the kernel, besides those that a change by others leads to: it does not tell of every change. */
export const CHECK_MS = 60_000;

/** Time between two full syncs where nothing asks for one: the comparisons find what is amiss. */
export const FULL_MS = 3_600_000;

/** After a failure. Most causes are gone in seconds; for one that stays, a full sync each minute is not too costly. */
export const RETRY = { firstMs: 1000, maxMs: 60_000 };
