/** A resource of the API whose objects are read and written one by one. */
export interface ObjectResource {
  /** As in paths and roles: `leases`. */
  readonly name: string;
  /** The part of the objects that is read and written, as in paths: `status`. @default all but such parts */
  readonly subresource?: string;
  /** `coordination.k8s.io`; empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** `Lease`. */
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Which object. */
export interface ObjectName {
  readonly name: string;
  /** Of a resource that is namespaced, and of no other. */
  readonly namespace?: string;
}

/**
 * Which object, and what must still be so when the server gets the request; otherwise it refuses with `conflict`. The
 * `metadata` of a StoredObject is such a target: exactly the object that was read, in the version that was read.
 */
export interface ObjectTarget extends ObjectName {
  /** The object has not been deleted and created anew. @default whichever has the name */
  readonly uid?: string;
  /** Nobody has written it since. @default whatever it looks like now */
  readonly resourceVersion?: string;
}

/** An object to be written; its apiVersion and kind are those of the resource. */
export interface NewObject {
  readonly metadata: ObjectName & ObjectFields;
  readonly [field: string]: unknown;
}

/** An object as the server has it, with all of its fields. */
export interface StoredObject {
  readonly metadata: Required<Pick<ObjectTarget, 'name' | 'uid' | 'resourceVersion'>> & ObjectName & ObjectFields;
  readonly [field: string]: unknown;
}

interface ObjectFields {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}
