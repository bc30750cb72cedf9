import { atOnce, formatIp, type IpAddress, insertSorted, removeSorted, type Steps } from '../../../core/index.ts';
import { byOwner, type PortClaim, type ServicePortPlan } from '../../index.ts';
import { type Binding, type Claim, type CompileContext, type CompiledPort, compilePort } from '../compile/compile.ts';
import { Marks } from '../compile/marks.ts';
import type { Server } from '../compile/server.ts';
import { elementKey, type SetElement } from '../compile/sets.ts';

/** Something several Service ports may want: it is there as long as one of them does. */
export interface Wanted<T> {
  readonly value: T;
  /** Keys of the Service ports. */
  readonly owners: ReadonlySet<string>;
}

/** An address Services have. */
export interface WantedAddress {
  readonly ip: IpAddress;
  readonly binding: Binding;
}

/** Keys of what may have to change. */
export interface Touched {
  readonly servers: Set<string>;
  readonly elements: Set<string>;
  /** As text. */
  readonly addresses: Set<string>;
}

/** To be filled. */
export function nothingTouched(): Touched {
  return { servers: new Set(), elements: new Set(), addresses: new Set() };
}

/** What either names. */
export function union(a: Touched, b: Touched): Touched {
  return {
    servers: new Set([...a.servers, ...b.servers]),
    elements: new Set([...a.elements, ...b.elements]),
    addresses: new Set([...a.addresses, ...b.addresses]),
  };
}

/** What a layout is made for. */
export type LayoutOptions = Omit<CompileContext, 'mark'> & {
  /** The bit that asks for masquerading. */
  readonly masqueradeMark: number;
};

/**
 * Everything that should be in the kernel, kept up to date one Service port at a time: what a change costs depends on the
 * change, not on how many Services there are. Nothing here touches the kernel.
 */
export class Layout {
  readonly #context: CompileContext;
  readonly #marks: Marks;
  readonly #ports = new Map<string, CompiledPort>();
  /** By `serverKey`; who has it comes first. */
  readonly #claims = new Map<string, Claimant[]>();
  readonly #servers = new Map<string, Server>();
  readonly #elements = new Map<string, WantedBy<SetElement>>();
  readonly #addresses = new Map<string, WantedBy<WantedAddress>>();
  #touched = nothingTouched();

  constructor(options: LayoutOptions) {
    this.#marks = new Marks(options.masqueradeMark);
    this.#context = { ...options, mark: (key) => this.#marks.take(key) };
  }

  /** By key. */
  get ports(): ReadonlyMap<string, CompiledPort> {
    return this.#ports;
  }

  /** By `serverKey`. */
  get servers(): ReadonlyMap<string, Server> {
    return this.#servers;
  }

  /** By `elementKey`. */
  get elements(): ReadonlyMap<string, Wanted<SetElement>> {
    return this.#elements;
  }

  /** By their text. */
  get addresses(): ReadonlyMap<string, Wanted<WantedAddress>> {
    return this.#addresses;
  }

  /** Throws ERR_DATAPLANE for a Service port that cannot be laid out; nothing has changed then. */
  *upsert(port: ServicePortPlan): Steps<void> {
    const before = this.#ports.get(port.key);
    const after = yield* compilePort(port, this.#context);
    yield* this.#replace(port.key, before, after);
    this.#ports.set(port.key, after);
  }

  /** @param key of the Service port; nothing happens when it is not there */
  remove(key: string): void {
    const before = this.#ports.get(key);
    if (!before) return;
    atOnce(this.#replace(key, before, undefined));
    this.#ports.delete(key);
    this.#marks.release(key);
  }

  /** What may have changed since the last call. */
  takeTouched(): Touched {
    const touched = this.#touched;
    this.#touched = nothingTouched();
    return touched;
  }

  /** What is new first, what is old after: something that stays is never without an owner. */
  *#replace(owner: string, before: CompiledPort | undefined, after: CompiledPort | undefined): Steps<void> {
    const winnersBefore = new Map<string, Claimant | undefined>();
    const keys = new Set([...(after?.claims.keys() ?? []), ...(before?.claims.keys() ?? [])]);
    for (const key of keys) {
      winnersBefore.set(key, this.#claims.get(key)?.[0]);
      this.#setClaim(key, owner, after?.claims.get(key));
    }
    const changes = [...winnersBefore].map(([key, old]) => ({ key, old, new: this.#claims.get(key)?.[0] }));
    for (const change of changes) if (change.new) yield* this.#enter(change.key, change.new);
    for (const element of after?.shared ?? []) {
      this.#wantElement(sharedOwner(owner), element);
      yield;
    }
    for (const change of changes) if (change.old) yield* this.#leave(change.key, change.old, change.new);
    const kept = yield* keysOf(after?.shared ?? []);
    for (const element of before?.shared ?? []) {
      yield;
      if (!kept.has(elementKey(element))) this.#unwantElement(sharedOwner(owner), element);
    }
  }

  #setClaim(key: string, owner: string, claim: Claim | undefined): void {
    let claimants = this.#claims.get(key);
    if (!claimants) {
      claimants = [];
      this.#claims.set(key, claimants);
    }
    if (claim) insertSorted(claimants, { owner, claim }, byOwner);
    else removeSorted<PortClaim>(claimants, { owner }, byOwner);
    if (claimants.length === 0) this.#claims.delete(key);
  }

  *#enter(key: string, { owner, claim }: Claimant): Steps<void> {
    this.#touched.servers.add(key);
    if (claim.server) this.#servers.set(key, claim.server);
    else this.#servers.delete(key);
    const tag = `${owner} ${key}`;
    for (const element of claim.elements) {
      this.#wantElement(tag, element);
      yield;
    }
    if (!claim.address) return;
    const { ip, binding } = claim.address;
    const text = formatIp(ip);
    this.#touched.addresses.add(text);
    want(this.#addresses, text, tag, { ip, binding });
  }

  *#leave(key: string, { owner, claim }: Claimant, now: Claimant | undefined): Steps<void> {
    this.#touched.servers.add(key);
    if (!now) this.#servers.delete(key);
    const tag = `${owner} ${key}`;
    const sameOwner = now?.owner === owner;
    const kept = yield* keysOf(sameOwner ? now.claim.elements : []);
    for (const element of claim.elements) {
      if (!kept.has(elementKey(element))) this.#unwantElement(tag, element);
      yield;
    }
    if (!claim.address || (sameOwner && now.claim.address)) return;
    const text = formatIp(claim.address.ip);
    this.#touched.addresses.add(text);
    unwant(this.#addresses, text, tag);
  }

  #wantElement(tag: string, element: SetElement): void {
    const key = elementKey(element);
    this.#touched.elements.add(key);
    want(this.#elements, key, tag, element);
  }

  #unwantElement(tag: string, element: SetElement): void {
    const key = elementKey(element);
    this.#touched.elements.add(key);
    unwant(this.#elements, key, tag);
  }
}

/** Owners are tagged with what they want it for: `<Service port> <claim>`. */
interface WantedBy<T> {
  value: T;
  readonly owners: Set<string>;
}

/** With places for a pause: there may be thousands. */
function* keysOf(elements: readonly SetElement[]): Steps<Set<string>> {
  const keys = new Set<string>();
  for (const element of elements) {
    keys.add(elementKey(element));
    yield;
  }
  return keys;
}

function sharedOwner(owner: string): string {
  return `${owner} shared`;
}

/** The Service port in a tag. */
export function ownerOf(tag: string): string {
  return tag.slice(0, tag.indexOf(' '));
}

function want<T>(all: Map<string, WantedBy<T>>, key: string, tag: string, value: T): void {
  const present = all.get(key);
  if (!present) {
    all.set(key, { value, owners: new Set([tag]) });
    return;
  }
  present.value = value;
  present.owners.add(tag);
}

function unwant<T>(all: Map<string, WantedBy<T>>, key: string, tag: string): void {
  const present = all.get(key);
  if (!present) return;
  present.owners.delete(tag);
  if (present.owners.size === 0) all.delete(key);
}

interface Claimant extends PortClaim {
  readonly claim: Claim;
}
