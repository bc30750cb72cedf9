// The sockets this process commits over. The kernel names the socket, not the process, in what it tells everybody; process
// numbers differ between containers. Each thread has a list of its own: one that is to know of another's sockets is told.

const ports = new Set<number>();
const listeners = new Set<() => void>();

export function addOwnPort(portId: number): void {
  ports.add(portId);
  for (const listener of listeners) listener();
}

export function removeOwnPort(portId: number): void {
  ports.delete(portId);
  for (const listener of listeners) listener();
}

/** Whether a transaction was made over a socket of this process that is still open. */
export function isOwnPort(portId: number): boolean {
  return ports.has(portId);
}

export function ownPorts(): readonly number[] {
  return [...ports];
}

/** Calls `listener` whenever a socket comes or goes, until the function returned is called. */
export function onOwnPorts(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
