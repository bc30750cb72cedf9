import { expect, it } from 'vitest';
import { recordProxyEvents } from './observe.ts';

it('makes an Event on the Service of what cannot be used of it, and none when that is mended', () => {
  const recorded: unknown[] = [];
  const observe = recordProxyEvents({ record: (subject, event) => void recorded.push({ ...subject, ...event }) });
  const common = { kind: 'serviceProblem', family: 'IPv4', at: 1, serviceName: 'shop/web' } as const;
  observe({ ...common, problems: ['External IP 203.0.113.1 is not served: it is another’s', 'spec.ports is odd'] });
  observe({ ...common, problems: [] });
  expect(recorded).toEqual([
    {
      kind: 'Service',
      namespace: 'shop',
      name: 'web',
      type: 'Warning',
      reason: 'ServicePartlyUnusable',
      action: 'ProgramService',
      note: 'In IPv4: External IP 203.0.113.1 is not served: it is another’s; spec.ports is odd',
    },
  ]);
});
