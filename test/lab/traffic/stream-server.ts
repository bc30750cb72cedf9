import { createServer, type ListenOptions, type Socket } from 'node:net';
import { answerLine, plainAddress } from './outcome.ts';
import type { Seen } from './protocol.ts';
import { sctpSocket } from './sctp-socket.ts';

export interface RunningServer {
  stop(): Promise<void>;
}

/** A server by TCP; see `serveStream`. */
export function serveTcp(name: string, port: number, ip: string): Promise<RunningServer> {
  return serveStream(name, { port, host: ip });
}

/** A server by SCTP; see `serveStream`. `::` is one server for each family (sctp-socket.ts says why). */
export async function serveSctp(name: string, port: number, ip: string): Promise<RunningServer> {
  const sockets = (ip === '::' ? ['0.0.0.0', '::'] : [ip]).map((each) => sctpSocket(each, port));
  const servers = await Promise.all(sockets.map((fd) => serveStream(name, { fd })));
  return {
    async stop() {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

/**
 * A server that answers the first line of each connection with its name and the client it saw, and echoes every
 * further line, so that a connection can be held open and tried again later.
 *
 * A first line that is an HTTP request gets an HTTP answer instead: that makes every lab server usable with curl.
 */
async function serveStream(name: string, where: ListenOptions | { readonly fd: number }): Promise<RunningServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // A client may break its connection at any time; that is its outcome, not ours.
    socket.on('error', () => socket.destroy());
    converse(socket, {
      by: name,
      source: plainAddress(socket.remoteAddress ?? ''),
      sourcePort: socket.remotePort ?? 0,
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ ...where, backlog: 1024 }, resolve);
  });
  return {
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) reset(socket);
      }),
  };
}

/**
 * libuv resets no connection that is being shut down, and Node then takes the handle for one that is closing
 * (TCPWrap::Reset). It never closes, and the thread that has it keeps a processor busy for ever when it is to end.
 */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

function converse(socket: Socket, seen: Seen): void {
  let received = '';
  let greeted = false;
  socket.setEncoding('utf8');
  socket.setNoDelay(true);
  socket.on('data', (chunk: string) => {
    received += chunk;
    if (!greeted && received.startsWith('GET ')) {
      // Answer only a complete request: closing with unread bytes would reset the connection.
      if (received.includes('\r\n\r\n')) socket.end(httpAnswer(seen));
      return;
    }
    for (let end = received.indexOf('\n'); end >= 0; end = received.indexOf('\n')) {
      const line = received.slice(0, end + 1);
      received = received.slice(end + 1);
      socket.write(greeted ? line : answerLine(seen));
      greeted = true;
    }
  });
}

function httpAnswer(seen: Seen): string {
  const body = `${seen.by} answers ${seen.source} port ${seen.sourcePort}\n`;
  return `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
}
