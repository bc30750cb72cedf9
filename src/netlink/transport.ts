/** Moves datagrams to and from the kernel: a socket, or a fake of one. */
export interface NetlinkTransport {
  /** The port ID the kernel addresses its answers to. */
  readonly portId: number;
  /** Sends one datagram of whole messages. Throws ERR_NETLINK_SOCKET when it cannot be sent. */
  send(data: Uint8Array): void;
  /**
   * The next datagram, whole: a view valid until the next call.
   * Throws ERR_NETLINK_SOCKET when none comes in time or when the kernel had to drop one (ENOBUFS).
   */
  receive(): Uint8Array;
  close(): void;
}

/** A transport of multicast messages. */
export interface GroupTransport extends BatchTransport {
  /**
   * From now on takes in only messages that the program takes, instead of those of the one before.
   *
   * @param program of struct sock_filter, at most 4096 of them
   * @throws ERR_NETLINK_SOCKET
   */
  attachFilter(program: Uint8Array): void;
  /** Is sent the messages of a multicast group from now on. Throws ERR_NETLINK_SOCKET. */
  joinGroup(group: number): void;
  /** Is sent no more of them; what waits stays. Throws ERR_NETLINK_SOCKET. */
  leaveGroup(group: number): void;
}

/** A transport for datagrams of any size, and for waiting elsewhere than in a system call. */
export interface BatchTransport extends NetlinkTransport {
  /** Raises the send queue's limit so that one datagram of `bytes` fits. Throws ERR_NETLINK_SOCKET. */
  makeRoom(bytes: number): void;
  /**
   * As `send`, with the event loop running while the kernel works. `data` must stay as it is until then, and no other call
   * may be made but `close` after it.
   */
  sendAsync(data: Uint8Array): Promise<void>;
  /** As `receive`, but undefined when no datagram is waiting, and 'overrun' when the kernel had to drop some (ENOBUFS). */
  receiveWaiting(): Uint8Array | 'overrun' | undefined;
  /** Calls `callback` whenever a datagram may be waiting, until the function returned is called. */
  onReadable(callback: () => void): () => void;
}
