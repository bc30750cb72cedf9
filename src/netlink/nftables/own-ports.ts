// The sockets this process commits over. The kernel names the socket, not the process, in what it tells everybody; process
// numbers differ between containers.

const ports = new Set<number>();

export function addOwnPort(portId: number): void {
  ports.add(portId);
}

export function removeOwnPort(portId: number): void {
  ports.delete(portId);
}

/** Whether a transaction was made over a socket of this process that is still open. */
export function isOwnPort(portId: number): boolean {
  return ports.has(portId);
}
