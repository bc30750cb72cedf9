import { sameBytes } from '../../core/index.ts';
import { type Node, type WantedAnnotations, WIREGUARD_ANNOTATIONS } from '../../kube/index.ts';
import { formatKey, tryParseKey } from '../../netlink/wireguard/index.ts';

/** How a node is known to the WireGuard devices of others. */
export interface WireguardIdentity {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** UDP; undefined: the one that this node uses itself. */
  readonly port: number | undefined;
}

/** What a Node's annotations say; undefined for no key, or none that could be one. */
export function readWireguardIdentity(annotations: Readonly<Record<string, string>>): WireguardIdentity | undefined {
  const keyText = annotations[WIREGUARD_ANNOTATIONS.publicKey];
  if (keyText === undefined) return undefined;
  const publicKey = tryParseKey(keyText);
  const port = Number(annotations[WIREGUARD_ANNOTATIONS.port]);
  return publicKey && { publicKey, port: Number.isInteger(port) && port > 0 && port <= 65535 ? port : undefined };
}

/** The annotations by which a node tells the others. */
export function wireguardAnnotations(publicKey: Uint8Array, port: number): Readonly<Record<string, string>> {
  return { [WIREGUARD_ANNOTATIONS.publicKey]: formatKey(publicKey), [WIREGUARD_ANNOTATIONS.port]: String(port) };
}

/** What is wanted of this node's own Node when it has no WireGuard device: nothing that would have others send to one. */
export function withdrawnWireguard({ metadata: { annotations = {} } }: Node): WantedAnnotations {
  const stale = Object.values(WIREGUARD_ANNOTATIONS).filter((name) => annotations[name] !== undefined);
  return Object.fromEntries(stale.map((name) => [name, undefined]));
}

/** Whether both are the same, or both missing. */
export function sameIdentity(a: WireguardIdentity | undefined, b: WireguardIdentity | undefined): boolean {
  if (!a || !b) return a === b;
  return a.port === b.port && sameBytes(a.publicKey, b.publicKey);
}
