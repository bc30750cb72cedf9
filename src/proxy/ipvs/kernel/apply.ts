import type { KernelError, Steps } from '../../../core/index.ts';
import { serverKey } from '../compile/server.ts';
import type { Changes } from '../diff/diff.ts';
import type { Draining } from '../diff/drain.ts';
import { isDoneAlready, isStale, type Operation } from '../diff/operations.ts';
import type { MutableState } from '../diff/state.ts';
import type { IpvsKernel } from './kernel.ts';

/** Objects written, by kind. */
export interface Written {
  servers: number;
  destinations: number;
  elements: number;
  addresses: number;
}

/** What became of changes. */
export interface Applied {
  readonly written: Written;
  readonly kernelSeconds: number;
  /** Service ports something of which was refused, by key, with the first reason. */
  readonly refused: ReadonlyMap<string, KernelError>;
  /** A refusal that says that the kernel is not as we thought. */
  readonly stale: KernelError | undefined;
  /** A refusal that no Service port is to blame for. */
  readonly failed: KernelError | undefined;
}

/** The kinds of objects that are counted. */
export const WRITTEN_KINDS = ['servers', 'destinations', 'elements', 'addresses'] as const satisfies (keyof Written)[];

/** To be counted up. */
export function nothingWritten(): Written {
  return { servers: 0, destinations: 0, elements: 0, addresses: 0 };
}

/** What changes are made in, and recorded in as far as they succeed. */
export interface ApplyTo {
  readonly kernel: IpvsKernel;
  readonly state: MutableState;
  readonly draining: Draining;
  /** Keys of the virtual servers this process made. */
  readonly made: Set<string>;
  /** By `Clock.now()`. */
  readonly now: number;
}

/** Operations between two pauses: some milliseconds in the kernel. */
const AT_ONCE = 500;

/** Makes changes in the kernel, with places for a pause. Throws ERR_NETLINK_SOCKET. */
export function* applyChanges({ kernel, state, draining, made, now }: ApplyTo, changes: Changes): Steps<Applied> {
  const written = nothingWritten();
  const refused = new Map<string, KernelError>();
  let stale: KernelError | undefined;
  let failed: KernelError | undefined;
  let milliseconds = 0;
  const blame = (operation: Operation, error: KernelError) => {
    // What follows from an earlier refusal says nothing by itself.
    if (operation.owners.some((owner) => refused.has(owner))) return;
    if (isStale(operation, error.errnoName)) stale ??= error;
    else if (operation.owners.length === 0) failed ??= error;
    for (const owner of operation.owners) refused.set(owner, error);
  };
  const note = (operation: Operation) => {
    state.record(operation);
    written[WRITTEN_AS[operation.kind]]++;
    if (operation.kind === 'newServer') made.add(serverKey(operation.virtual.key));
    if (operation.kind !== 'deleteServer') return;
    made.delete(serverKey(operation.key));
    draining.forget(serverKey(operation.key));
  };
  for (const operations of changes.steps.flatMap(inChunks)) {
    yield;
    const started = performance.now();
    const outcomes = kernel.apply(operations);
    milliseconds += performance.now() - started;
    for (const [index, operation] of operations.entries()) {
      const error = outcomes[index];
      if (error && !isDoneAlready(operation, error.errnoName)) blame(operation, error);
      else note(operation);
    }
  }
  for (const [server, endpoint] of changes.revived) draining.end(server, endpoint);
  for (const [server, endpoint] of changes.drained) {
    const held = state.servers.get(server);
    if (held?.destinations.has(endpoint)) draining.begin(server, held.virtual.key, endpoint, now);
  }
  for (const [server, retired] of changes.retired) draining.setRetired(server, retired);
  return { written, kernelSeconds: milliseconds / 1000, refused, stale, failed };
}

function inChunks(operations: readonly Operation[]): (readonly Operation[])[] {
  const chunks: (readonly Operation[])[] = [];
  for (let at = 0; at < operations.length; at += AT_ONCE) chunks.push(operations.slice(at, at + AT_ONCE));
  return chunks;
}

const WRITTEN_AS: Readonly<Record<Operation['kind'], keyof Written>> = {
  newServer: 'servers',
  setServer: 'servers',
  deleteServer: 'servers',
  newDestination: 'destinations',
  setDestination: 'destinations',
  deleteDestination: 'destinations',
  addElement: 'elements',
  deleteElement: 'elements',
  bind: 'addresses',
  unbind: 'addresses',
};
