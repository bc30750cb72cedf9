import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { RoutesReport } from '../report.ts';
import { askAgent } from './ask-agent.ts';

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const REPORT: RoutesReport = {
  node: 'n1',
  mode: 'auto',
  families: [
    {
      family: 'IPv4',
      problem: null,
      total: 1,
      nodes: [
        {
          name: 'n2',
          way: { mode: 'direct', gateway: '10.0.0.2', address: '10.0.0.2', podCidrs: ['10.244.2.0/24'] },
          leftOut: null,
          lastChange: '2026-11-22T10:00:00.000Z',
        },
      ],
    },
  ],
};

it('gives what the agent says', async () => {
  const paths: unknown[] = [];
  const at = await serve((request, response) => {
    paths.push(request.url);
    response.end(JSON.stringify(REPORT));
  });
  expect(await askAgent(at)).toEqual(REPORT);
  expect(paths).toEqual(['/routes']);
});

it.each<[string, RequestListener, RegExp]>([
  ['an agent without --routes', (_, response) => response.writeHead(404).end(), /it runs without --routes/],
  [
    'an agent that takes us for a stranger',
    (_, response) => response.writeHead(403).end(),
    /127\.0\.0\.1 and ::1 only/,
  ],
  ['another server', (_, response) => response.end('<html>'), /the answer is not one of nodeplane/],
  [
    'a gateway that is no address',
    (_, response) => response.end(JSON.stringify(REPORT).replace('10.0.0.2', '\u001b[2J')),
    /the answer is not one of nodeplane/,
  ],
  ['a text of brackets', (_, response) => response.end('['.repeat(1_000_000)), /the answer is not one of nodeplane/],
  ['one that cuts the connection', (request) => request.socket.destroy(), /socket hang up/],
  [
    'one that never ends',
    (_, response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(1 << 20)));
        response.once('drain', more);
      };
      more();
    },
    /more than 16777216 bytes/,
  ],
  ['one that says nothing', () => {}, /no answer within 5 s/],
])('%s: an error in words', async (_, listener, words) => {
  const at = await serve(listener);
  const error: unknown = await askAgent(at).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'ERR_ROUTES_AGENT', facts: { at } });
  const { message, cause } = error as Error;
  expect(`${message} ${cause}`).toMatch(words);
});

it('nobody there: an error in words', async () => {
  const at = await serve(() => {});
  servers.splice(0).map((server) => server.close());
  await expect(askAgent(at)).rejects.toMatchObject({ code: 'ERR_ROUTES_AGENT', cause: { code: 'ECONNREFUSED' } });
});
