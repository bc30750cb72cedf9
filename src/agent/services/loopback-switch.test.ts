import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { ProxyEvent } from '../../proxy/index.ts';
import { loopbackSwitch } from './loopback-switch.ts';

const GUARD = { object: 'jump filter KUBE-FIREWALL -> DROP', difference: 'missing' } as const;
const OTHER = { object: 'filter chain KUBE-SERVICES', difference: 'missing' } as const;

function setup(wanted = true) {
  const said: string[] = [];
  const state = { on: false, readOnly: false, wanted };
  const turn = (on: boolean) => {
    if (state.on === on) return false;
    if (state.readOnly) throw new Error('EROFS');
    state.on = on;
    return true;
  };
  const logger = pino({}, { write: (line) => void said.push(JSON.parse(line).msg) });
  const observe = loopbackSwitch(logger, () => state.wanted, { on: () => turn(true), off: () => turn(false) });
  const tell = (body: object) => observe({ family: 'IPv4', at: 0, ...body } as ProxyEvent);
  return { state, said, tell };
}

it('is on once the rules are in, and only where they are wanted', () => {
  const { state, tell } = setup();
  tell({ kind: 'started' });
  tell({ kind: 'syncFailed', full: true });
  tell({ kind: 'syncFinished', full: false });
  tell({ kind: 'syncFinished', full: true, family: 'IPv6' });
  expect(state.on).toBe(false);
  tell({ kind: 'syncFinished', full: true });
  expect(state.on).toBe(true);
});

it('is off from when the rules are found to be gone until the sync that brings them back has succeeded', () => {
  const { state, tell } = setup();
  tell({ kind: 'syncFinished', full: true });
  tell({ kind: 'driftFound', drifts: [OTHER] });
  expect(state.on).toBe(true);
  tell({ kind: 'driftFound', drifts: [OTHER, GUARD] });
  expect(state.on).toBe(false);
  tell({ kind: 'syncFailed', full: true });
  expect(state.on).toBe(false);
  tell({ kind: 'syncFinished', full: true });
  expect(state.on).toBe(true);
});

it('is off when nobody looks after the rules, and what cannot be switched is said', () => {
  const { state, said, tell } = setup(false);
  state.on = true;
  state.readOnly = true;
  tell({ kind: 'syncFinished', full: true });
  state.readOnly = false;
  tell({ kind: 'syncFinished', full: true });
  expect(state.on).toBe(false);
  expect(said).toEqual([
    'net.ipv4.conf.all.route_localnet stays on, which nothing needs any more; set it to 0',
    'net.ipv4.conf.all.route_localnet is off again: there are no NodePorts at 127.0.0.1',
  ]);
});
