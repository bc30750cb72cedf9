import { connect } from 'node:net';
import { createHost } from '../test/lab/host.ts';
import { createNamespace, type TestNamespace } from '../test/lab/namespace.ts';
import { ip } from '../test/lab/wire.ts';

const PORT = 8080;

/**
 * Makes two namespaces with a veth between them. Packets leave the one that is returned by its rules, if any; every
 * address that `sampleService` gives to endpoints is the other's, and a server listens there.
 */
export async function createPacketPath(label: string): Promise<TestNamespace> {
  const client = createNamespace(`client-${label}`);
  const server = createNamespace(`server-${label}`);
  ip(client, [
    `link add eth0 type veth peer name eth0 netns ${server.name}`,
    'link set lo up',
    'address add 192.0.2.1/30 dev eth0',
    'link set eth0 up',
  ]);
  ip(server, [
    'link set lo up',
    'address add 192.0.2.2/30 dev eth0',
    'link set eth0 up',
    // A local route makes all of them addresses of this host.
    'route add local 10.200.0.0/14 dev lo',
  ]);
  ip(client, ['route add default via 192.0.2.2']);
  await createHost({ name: label, namespace: server, ips: ['192.0.2.2'] }).serve({ port: PORT });
  return client;
}

/** Where a connection goes, and from which port: the kernel's choice if left out. */
export interface Connection {
  readonly host: string;
  readonly port: number;
  readonly localPort?: number;
}

/** Makes a TCP connection and resets it, so that its port is free again; resolves to how long connecting took, in ms. */
export function connectOnce(connection: Connection): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(connection);
    const startedAt = performance.now();
    socket.on('error', reject);
    socket.on('connect', () => {
      const ms = performance.now() - startedAt;
      socket.resetAndDestroy();
      socket.on('close', () => resolve(ms));
    });
  });
}
