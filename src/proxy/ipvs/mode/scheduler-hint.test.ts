import { expect, it } from 'vitest';
import { makeService } from '../../../../test/fakes/service-objects.ts';
import { servicePortsOf } from '../../index.ts';
import { SCHEDULER_HINT } from './scheduler-hint.ts';

const schedulerOf = (text: string) => {
  const annotated = makeService('shop/web', {}, { annotations: { 'nodeplane.io/ipvs-scheduler': text } });
  const { ports, problems } = servicePortsOf(annotated, 'IPv4', { hint: SCHEDULER_HINT });
  return { scheduler: ports[0]!.hint, problems };
};

it.each(['lc', ' mh,mh-fallback '])('is what the annotation says: "%s"', (text) => {
  expect(schedulerOf(text)).toEqual({ scheduler: text.trim(), problems: [] });
});

it.each(['round robin', 'RR', '-a', 'mh;reboot', 'a'.repeat(16)])('is the node’s when it says "%s"', (text) => {
  expect(schedulerOf(text)).toEqual({ scheduler: undefined, problems: [expect.stringContaining(text)] });
});
