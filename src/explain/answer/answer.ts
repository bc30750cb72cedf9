import type { CauseCode } from './codes.ts';

export const ANSWER_SCHEMA = 'explain/v1';

/** `partly`: some endpoints, or some connections. `unknown`: something that decides cannot be told from here. */
export type Verdict = 'works' | 'fails' | 'partly' | 'unknown';

/** In the order in which a packet meets them. */
export const STAGES = [
  'source',
  'service',
  'endpoints',
  'agent',
  'rules',
  'conntrack',
  'others',
  'route',
  'link',
  'endpoint',
  'way back',
] as const;
export type StageName = (typeof STAGES)[number];

export type StageResult = 'ok' | 'fail' | 'unknown' | 'not-reached';

/** A fact as it was read. */
export interface Evidence {
  /** Where it was read: `nf_tables`, `conntrack`, `/proc/sys`, `API object`. */
  readonly source: string;
  readonly object: string;
  readonly value: string;
}

export interface Stage {
  readonly stage: StageName;
  readonly result: StageResult;
  readonly text: string;
  readonly evidence: readonly Evidence[];
}

/** One endpoint of the Service, or one of several that rules of others lead to. */
export interface AnswerEndpoint {
  /** `10.244.1.9:8080` */
  readonly address: string;
  /** Null: not known. */
  readonly node: string | null;
  readonly here: boolean;
  readonly used: boolean;
  /** Why it is used or not. */
  readonly reason: string;
  /** What is wrong with it. */
  readonly problem: CauseCode | null;
}

/** A further cause, after the first on the path. */
export interface FurtherCause {
  readonly code: CauseCode;
  readonly text: string;
}

/** Something that the agent saw before it was asked. */
export interface SeenBefore {
  /** `missed`: what it may not have seen. */
  readonly kind: 'unanswered' | 'rules' | 'missed';
  readonly text: string;
  /** When, or the last time of several; null: it is not of one time. */
  readonly secondsAgo: number | null;
}

/** The one object everything that is told is made from; fields are only added. */
export interface Answer {
  readonly schema: typeof ANSWER_SCHEMA;
  readonly question: {
    /** As it was understood: `pod 10.244.1.7`, `svc shop/web:80 (10.96.0.12/tcp)`. */
    readonly from: string;
    readonly to: string;
    readonly protocol: string;
    readonly family: string;
  };
  readonly verdict: Verdict;
  readonly code: CauseCode | null;
  readonly cause: string;
  /** Where the code is explained. */
  readonly page: string | null;
  readonly endpoints: readonly AnswerEndpoint[];
  readonly path: readonly Stage[];
  /** At most three. */
  readonly also: readonly FurtherCause[];
  readonly warnings: readonly FurtherCause[];
  readonly seen: readonly SeenBefore[];
  readonly remedy: readonly string[];
  readonly notChecked: readonly string[];
  readonly tookMs: number;
}

/** 0 works, 1 fails or partly, 2 cannot tell. */
export function exitCodeOf({ verdict }: Pick<Answer, 'verdict'>): number {
  return { works: 0, fails: 1, partly: 1, unknown: 2 }[verdict];
}
