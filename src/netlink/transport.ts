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
