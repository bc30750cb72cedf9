import { readMessages } from '../../message.ts';
import { openSocket } from '../../socket.ts';
import { NETLINK_NETFILTER } from '../../uapi/netlink.ts';
import { NFNLGRP_NFTABLES } from '../../uapi/nf-tables.ts';
import { type SocketWatch, watchSocket, withoutPorts } from '../../watch/index.ts';
import { addListener } from '../listening/absence.ts';
import { onOwnPorts, ownPorts } from '../listening/own-ports.ts';
import type { NftCommit } from './commit.ts';
import { CommitReader } from './commit-reader.ts';

/** A reload of a firewall is some 100 KiB of messages; more is lost and said to be. */
const QUEUE_BYTES = 2 << 20;

/**
 * Tells the transactions of nf_tables that other processes make in the calling thread's namespace (`inNetns` for another), until
 * `close`. What this process commits the kernel drops before anybody is woken.
 *
 * @param listener 'lost': transactions were missed, because they came faster than they were read
 * @throws ERR_NETLINK_SOCKET
 */
export function watchCommits(listener: (commit: NftCommit | 'lost') => void): SocketWatch {
  const filter = () => withoutPorts(ownPorts());
  const socket = openSocket(NETLINK_NETFILTER, {
    groups: [NFNLGRP_NFTABLES],
    bufferBytes: QUEUE_BYTES,
    filter: filter(),
  });
  const stop = onOwnPorts(() => socket.attachFilter(filter()));
  const reader = new CommitReader();
  const watch = watchSocket(socket, (datagram) => {
    try {
      if (datagram === 'lost') throw datagram;
      for (const message of readMessages(datagram)) {
        const commit = reader.take(message);
        if (commit) listener(commit);
      }
    } catch {
      // What this program cannot read is as good as lost.
      reader.forget();
      listener('lost');
    }
  });
  const remove = addListener({
    leave: () => socket.leaveGroup(NFNLGRP_NFTABLES),
    rejoin: () => socket.joinGroup(NFNLGRP_NFTABLES),
    missed(what) {
      watch.catchUp();
      // Of a transaction that was being told when this left, the end was not heard.
      reader.forget();
      if (what === 'by others') listener('lost');
    },
  });
  return {
    catchUp: () => watch.catchUp(),
    close() {
      remove();
      stop();
      watch.close();
    },
  };
}
