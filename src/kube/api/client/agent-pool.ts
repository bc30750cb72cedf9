import http from 'node:http';
import https, { type RequestOptions } from 'node:https';

/**
 * Keeps one agent, hence its idle connections, as long as the TLS material stays the same. A renewed client certificate
 * gets a new agent: connections of the old one would go on with the old identity.
 */
export class AgentPool {
  #agent: http.Agent | undefined;
  #identity = '';

  agentFor(server: URL, { ca, cert, key, servername, rejectUnauthorized }: RequestOptions): http.Agent {
    const tls = { ca, cert, key, servername, rejectUnauthorized };
    const identity = [server.protocol, ...Object.values(tls)].map(String).join('\n');
    if (this.#agent && identity === this.#identity) return this.#agent;
    this.close();
    this.#identity = identity;
    this.#agent =
      server.protocol === 'https:' ? new https.Agent({ keepAlive: true, ...tls }) : new http.Agent({ keepAlive: true });
    return this.#agent;
  }

  /** Closes what is idle; what is in use goes on and is closed when done. */
  close(): void {
    const agent = this.#agent;
    this.#agent = undefined;
    if (!agent) return;
    for (const sockets of Object.values(agent.freeSockets)) {
      for (const socket of sockets ?? []) socket.destroy();
    }
    agent.maxFreeSockets = 0;
  }
}
