import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ServiceSpec } from '../../../src/kube/index.ts';
import { makeNode, makeService } from '../../fakes/service-objects.ts';
import { manifestOf, saveManifest } from '../../samples/manifests.ts';
import { type Agent, createLab, type Host, removeAll } from '../lab.ts';
import { own } from '../namespace.ts';

// Clients that open connections and do nothing, or dribble, against an agent with few descriptors.

/** As few as a container runtime gives. */
const DESCRIPTORS = 400;

const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
const manifests = join(lab.folder, 'manifests');
const attackers = ['one', 'two', 'three'].map((name) => lab.addClient(name));
const prober = lab.addClient('prober');
const HEALTH = 10256;
const METRICS = 10249;
const CHECK = 30999;
let agent: Agent;

function saveService(name: string, clusterIP: string, spec: Partial<ServiceSpec> = {}): void {
  saveManifest(manifests, `${name}.yaml`, manifestOf(makeService(`demo/${name}`, { clusterIP, ...spec })));
}

/**
 * Holds `count` connections to each of these ports of the node from one client, opening them again whenever they are closed;
 * every half second each sends `line`, if there is one.
 */
function attack(client: Host, ports: readonly number[], count: number, line = ''): void {
  const program = `
    const { connect } = require('node:net');
    const [host, ports, count, line] = JSON.parse(process.argv[1]);
    const open = (port) => {
      const socket = connect({ port, host });
      const drip = line && setInterval(() => socket.writable && socket.write(line), 500);
      if (line) socket.write('GET /livez HTTP/1.1\\r\\n');
      socket.on('error', () => {});
      socket.on('close', () => { clearInterval(drip); setTimeout(open, 500, port); });
    };
    for (const port of ports) for (let i = 0; i < count; i++) open(port);`;
  const input = JSON.stringify([node.ip(), ports, count, line]);
  const args = ['netns', 'exec', client.namespace.name, process.execPath, '-e', program, input];
  const child = spawn('ip', args, { stdio: 'ignore' });
  own(() => void child.kill('SIGKILL'));
}

const descriptors = () => readdirSync(`/proc/${agent.pid}/fd`).length;
const status = async (port: number, path = '/') => {
  try {
    return (await prober.httpGet(`http://${node.ip()}:${port}${path}`, { timeoutMs: 10_000 })).status;
  } catch (error) {
    return (error as Error).message;
  }
};

beforeAll(async () => {
  mkdirSync(manifests);
  const spec = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: CHECK } as const;
  saveService('checked', '10.96.0.20', spec);
  saveManifest(manifests, 'node.yaml', manifestOf(makeNode('node-1')));
  agent = await node.startAgent({
    manifests,
    flags: ['--metrics-bind-address', `0.0.0.0:${METRICS}`],
    enter: ['ip', 'netns', 'exec', node.namespace.name, 'prlimit', `--nofile=${DESCRIPTORS}`],
  });
});
afterAll(removeAll);

it('700 connections that do nothing cost the agent neither its work nor its probes', async () => {
  const before = descriptors();
  for (const client of attackers.slice(0, 2)) attack(client, [HEALTH, METRICS, CHECK], 90);
  // Slowloris: headers without end.
  attack(attackers[2]!, [HEALTH, METRICS], 80, 'X-a: b\r\n');
  await expect.poll(descriptors).toBeGreaterThan(before + 40);
  for (let round = 0; round < 10; round++) {
    expect([await status(HEALTH, '/livez'), await status(METRICS, '/metrics')]).toEqual([200, 200]);
    // No endpoint here: an answer all the same.
    expect(await status(CHECK)).toBe(503);
    saveService(`under-attack-${round}`, `10.96.1.${round}`);
    expect(descriptors()).toBeLessThan(before + 160);
  }
  await expect.poll(() => node.iptablesSave('nft')).toContain('10.96.1.9');
  // The attack goes on: this question may be among the evicted.
  await expect.poll(agent.metrics).toMatch(/^nodeplane_http_connections_evicted_total [1-9]/m);
  expect(agent.logs().filter(({ level }) => level !== 'info' && level !== 'warn')).toEqual([]);
  expect(await agent.stop()).toBe(0);
});
