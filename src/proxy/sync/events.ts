import type { Drift, IpFamily } from '../../core/index.ts';
import type { NoLocalEndpoints, PortTroubles, RestrictedServices } from '../plan/index.ts';
import type { Commit, LeftOutPort } from './dataplane.ts';

/**
 * Everything the proxy lets others see; log, metrics and health live on it. `at` is calendar time, to be printed and
 * compared with trigger times: milliseconds since the epoch.
 */
export type ProxyEvent = { readonly family: IpFamily; readonly at: number } & (
  | { readonly kind: 'started' }
  /** Objects changed; the counts are those waiting for the next sync. */
  | {
      readonly kind: 'changed';
      readonly object: 'service' | 'slice';
      readonly pending: { readonly services: number; readonly slices: number };
    }
  /** A sync was asked for. */
  | { readonly kind: 'queued'; readonly reason: 'start' | 'change' | 'node' | 'drift' | 'request' }
  | { readonly kind: 'syncStarted'; readonly full: boolean }
  | {
      readonly kind: 'syncFinished';
      readonly full: boolean;
      readonly seconds: number;
      /** What the dataplane did; undefined when nothing was different and it was not asked. */
      readonly commit: Commit | undefined;
      /** Service ports written or removed; of a full sync, those different from before. */
      readonly deltaSize: number;
      /** Whose ports these are, if they are few: `shop/web`. @default not told */
      readonly services?: readonly string[];
      /** When the changes happened that are now in the kernel. */
      readonly triggerTimes: readonly number[];
      readonly noLocalEndpoints: NoLocalEndpoints;
      readonly restrictedServices: RestrictedServices;
    }
  | {
      readonly kind: 'syncFailed';
      readonly full: boolean;
      readonly seconds: number;
      readonly error: unknown;
      /** Whether the plan could not be made or the kernel could not be brought in line with it. */
      readonly stage: 'plan' | 'commit';
      readonly retryInMs: number;
    }
  /** The set of things in a Service that cannot be used changed; empty: all mended. */
  | { readonly kind: 'serviceProblem'; readonly serviceName: string; readonly problems: readonly string[] }
  /** What keeps a Service port from doing what may be expected of it changed; none: mended. */
  | ({ readonly kind: 'portTroubles' } & PortTroubles)
  /** The set of Service ports the kernel refused changed: these are not programmed, all others are. Empty: all mended. */
  | { readonly kind: 'leftOut'; readonly ports: readonly LeftOutPort[] }
  /** The kernel no longer holds what was committed; a full sync follows at once. Never empty. */
  | { readonly kind: 'driftFound'; readonly drifts: readonly Drift[] }
  /** The kernel holds what was committed. */
  | { readonly kind: 'verified' }
  /** The kernel could not be read to look for drift; the next look is made as usual. */
  | { readonly kind: 'verifyFailed'; readonly error: unknown }
  /** Work beside the syncs failed; what it would have found out stays as it was, and it is tried again in its time. */
  | { readonly kind: 'workFailed'; readonly work: 'address listing' | 'flow cleaning'; readonly error: unknown }
);

/** Called synchronously, in order. One that throws harms neither the proxy nor other observers. */
export type ProxyObserver = (event: ProxyEvent) => void;

/** The part of an event that differs from event to event. */
export type ProxyEventBody = ProxyEvent extends infer Event
  ? Event extends ProxyEvent
    ? Omit<Event, 'family' | 'at'>
    : never
  : never;
