// The sockets this process commits over, by their port IDs. The kernel names the socket, not the process, in what it
// tells everybody; process numbers differ between containers. Each thread has a list of its own: one that is to know of
// another's sockets is told.

const ports = new Set<number>();
const listeners = new Set<() => void>();

/** From now on what is made over this socket is our own. */
export function addOwnPort(portId: number): void {
  ports.add(portId);
  for (const listener of listeners) listener();
}

/** The socket is closed: the kernel may give its port ID to somebody else. */
export function removeOwnPort(portId: number): void {
  ports.delete(portId);
  for (const listener of listeners) listener();
}

/** Whether a transaction was made over a socket of this process that is still open. */
export function isOwnPort(portId: number): boolean {
  return ports.has(portId);
}

/** Those of this thread, to be told to another. */
export function ownPorts(): readonly number[] {
  return [...ports];
}

/** Calls `listener` whenever a socket comes or goes, until the function returned is called. */
export function onOwnPorts(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
