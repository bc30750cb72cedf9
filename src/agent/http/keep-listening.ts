import type { Server } from 'node:net';
import type { Clock, Timer } from '../../core/index.ts';

/** How to keep a server listening. */
export interface KeepListeningOptions {
  readonly server: Server;
  /** Calls the server's `listen`; again after each failure. */
  readonly listen: () => void;
  readonly clock: Clock;
  /** Told once about each time in which nobody can be accepted. Must not throw. */
  readonly failed: (error: NodeJS.ErrnoException) => void;
}

/** Without a descriptor there is nothing to be done but to wait until others give some back. */
const PAUSE_MS = 1000;

/**
 * Listens, and goes on when accepting fails (EMFILE, ENFILE, ENOMEM). A server of node:net whose errors nobody hears ends the
 * process then; and libuv, once it has lost the descriptor it keeps for this case, reports the same failure for as long as
 * a client waits, which leaves no time for anything else. So the socket is closed, which frees a descriptor and sends the
 * waiting clients away, and opened anew a second later. Connections that were accepted go on.
 *
 * @returns what ends the listening
 * @throws the system's error (EADDRINUSE, ...) when it cannot listen at first
 */
export function keepListening({ server, listen, clock, failed }: KeepListeningOptions): Promise<() => void> {
  let timer: Timer | undefined;
  let failing = false;
  const onError = (error: NodeJS.ErrnoException) => {
    if (!failing) failed(error);
    failing = true;
    server.close();
    timer = clock.setTimer(listen, PAUSE_MS);
  };
  const stop = () => {
    timer?.cancel();
    server.off('error', onError);
    // What is under way in libuv may still fail.
    server.on('error', () => {});
    server.close();
  };
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => {
      server.off('error', reject);
      server.on('error', onError);
      server.on('listening', () => {
        failing = false;
      });
      resolve(stop);
    });
    listen();
  });
}
