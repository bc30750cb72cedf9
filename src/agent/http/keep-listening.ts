import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import type { Server } from 'node:net';
import { dirname } from 'node:path';
import type { Clock, Timer } from '../../core/index.ts';

/** How to keep a server listening. */
export interface KeepListeningOptions {
  readonly server: Server;
  /** Calls the server's `listen`; again after each failure. */
  readonly listen: () => void;
  readonly clock: Clock;
  /** Of a unix socket, which is root's alone: where it lies. When somebody removes it, it is made anew. @default it has none */
  readonly path?: string | undefined;
  /** Told once about each time in which nobody can be accepted. Must not throw. */
  readonly failed: (error: NodeJS.ErrnoException) => void;
}

/** Without a descriptor there is nothing to be done but to wait until others give some back. */
const PAUSE_MS = 1000;
/** The kernel goes on listening at a socket that nobody finds any more, and tells nobody. A look takes some microseconds. */
const LOOK_MS = 5000;

/**
 * Listens, and goes on when accepting fails (EMFILE, ENFILE, ENOMEM). A server of node:net whose errors nobody hears ends the
 * process then; and libuv, once it has lost the descriptor it keeps for this case, reports the same failure for as long as
 * a client waits, which leaves no time for anything else. So the socket is closed, which frees a descriptor and sends the
 * waiting clients away, and opened anew a second later. Connections that were accepted go on.
 *
 * @returns what ends the listening
 * @throws the system's error (EADDRINUSE, ...) when it cannot listen at first
 */
export function keepListening({ server, listen, clock, path, failed }: KeepListeningOptions): Promise<() => void> {
  let timer: Timer | undefined;
  let failing = false;
  const onError = (error: NodeJS.ErrnoException) => {
    if (!failing) failed(error);
    failing = true;
    server.close();
    later(PAUSE_MS, () => {
      if (path !== undefined) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      listen();
    });
  };
  const look = () => {
    if (path === undefined) return;
    if (existsSync(path)) later(LOOK_MS, look);
    else onError(new Error(`somebody has removed the socket "${path}"; it is made anew in a second`));
  };
  const later = (ms: number, fn: () => void) => {
    timer?.cancel();
    timer = clock.setTimer(() => {
      try {
        fn();
      } catch (error) {
        onError(error as NodeJS.ErrnoException);
      }
    }, ms);
  };
  const stop = () => {
    timer?.cancel();
    server.off('error', onError);
    server.off('listening', onListening);
    // What is under way in libuv may still fail.
    server.on('error', () => {});
    server.close();
  };
  const onListening = () => {
    failing = false;
    if (path !== undefined) chmodSync(path, 0o600);
    look();
  };
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => {
      server.off('error', reject);
      server.on('error', onError);
      server.on('listening', onListening);
      try {
        onListening();
        resolve(stop);
      } catch (error) {
        stop();
        reject(error);
      }
    });
    listen();
  });
}
