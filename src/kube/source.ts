import type { KubeKind, KubeObject } from './objects/types.ts';

/** One object came, changed or went. `deleted` carries the last known state. */
export interface ObjectEvent {
  readonly type: 'added' | 'updated' | 'deleted';
  readonly object: KubeObject;
}

/** Something in the source cannot be used, and its last good state stays in force; or it is in force, and probably not as meant. */
export interface SourceProblem {
  /** Where: a file with line (`web.yaml:12`), or an API resource. */
  readonly where: string;
  /** The object it is about, `Service demo/web`, when known. */
  readonly object?: string;
  /** The field path, `spec.ports[0].port`, when known. */
  readonly field?: string;
  readonly message: string;
  /** The object is in force all the same: only what is named is left out, or does nothing. @default false */
  readonly inForce?: true;
  /** No object is at fault: the resource as a whole cannot be read at the moment. @default false */
  readonly unread?: true;
  /** Names no object, and stands for so many that are named nowhere, because there are too many. */
  readonly others?: number;
}

/**
 * How many objects cannot be used as they are now. One with several mistakes counts once, and so do those of a file that cannot
 * be told apart: how many there are in YAML that is broken nobody knows.
 */
export function countUnusable(problems: readonly SourceProblem[]): number {
  const named = new Set<string>();
  let others = 0;
  for (const { where, object = '', inForce, unread, others: more } of problems) {
    if (inForce || unread) continue;
    if (more === undefined) named.add(`${where.replace(/:\d+$/, '')} ${object}`);
    else others += more;
  }
  return named.size + others;
}

/** `web.yaml:12: Service demo/web spec.ports[0].port: Expected …`. */
export function problemText({ where, object, field, message }: SourceProblem): string {
  const what = [object, field].filter(Boolean).join(' ');
  return [where, what, message].filter(Boolean).join(': ');
}

/** What a source tells. All calls are synchronous and in order. */
export interface ObjectHandler {
  event(event: ObjectEvent): void;
  /** Called once for each kind of objects that can be read, when all of it that existed at the start have been told. */
  listed?(kind: KubeKind): void;
  /** Called once, when everything that existed at the start has been told, or cannot be waited for. */
  synced(): void;
  /** Called whenever the set of present problems changes, with all of them (empty: all mended). */
  problems(problems: readonly SourceProblem[]): void;
}

/** Where Kubernetes objects come from: an API server or a directory of manifests. */
export interface ObjectSource {
  start(handler: ObjectHandler): Promise<void>;
  stop(): Promise<void>;
}
