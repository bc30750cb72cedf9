import { expect, it } from 'vitest';
import { formatBindAddress, parseBindAddress } from '../../config/index.ts';
import { shellWord } from '../../core/index.ts';
import { AGENT_ADDRESS, ownCommands } from './own-commands.ts';

const DEFAULTS = { metrics: AGENT_ADDRESS, lockDir: '/run/nodeplane', argv: [] };

it('asks an agent where it is by default without flags', () => {
  const { status, routes, diff, ipam, services } = ownCommands(DEFAULTS);
  expect([status, routes, diff, ipam, services(), services('shop/web')]).toEqual([
    'nodeplane status',
    'nodeplane routes',
    'nodeplane diff',
    'nodeplane ipam',
    'nodeplane services',
    'nodeplane services shop/web',
  ]);
});

it.each(['127.0.0.1:11249', '[::1]:10249'])('names the metrics port %s, as the commands read it', (metrics) => {
  const { status, routes, services } = ownCommands({ ...DEFAULTS, metrics });
  expect(formatBindAddress(parseBindAddress(metrics)!)).toBe(metrics);
  expect([status, routes, services('shop/web')]).toEqual([
    `nodeplane status --address ${shellWord(metrics)}`,
    `nodeplane routes --address ${shellWord(metrics)}`,
    `nodeplane services shop/web --address ${shellWord(metrics)}`,
  ]);
});

it('names the directory of the socket, and the flags by which the agent reads its addresses', () => {
  const argv = ['--config', '/etc/node plane.yaml', '--cni'];
  const { diff, explain, ipam, ipamCheck, preflight } = ownCommands({ ...DEFAULTS, lockDir: '/run/other', argv });
  expect(diff).toBe('nodeplane diff --agent-lock-dir /run/other');
  expect(explain).toBe('nodeplane explain --agent-lock-dir /run/other');
  expect(ipam).toBe("nodeplane ipam --config '/etc/node plane.yaml' --cni");
  expect(ipamCheck).toBe("nodeplane ipam check --config '/etc/node plane.yaml' --cni");
  expect(preflight).toBe("nodeplane preflight --config '/etc/node plane.yaml' --cni");
});
