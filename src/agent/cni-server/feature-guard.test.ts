import { expect, it } from 'vitest';
import { stillWanted } from './feature-guard.ts';

const element = (comment?: string) => ({ key: Uint8Array.of(1), comment });
const set = (...comments: (string | undefined)[]) => ({
  ...({ kind: 'elements', family: 'inet', table: 't', set: 's' } as const),
  elements: comments.map(element),
});
const admission = (comment: string) => ({ family: 'IPv4', expressions: [], comment }) as const;

it('wants what pods have whose link is there, and no longer what detached ones had', () => {
  const known = {
    elements: [set('veth1 net/a/eth0', 'veth2 net/b/eth0', undefined), set('veth2 net/b/eth0')],
    admissions: [admission('nodeplane "net"'), admission('nodeplane "gone"')],
  };
  const links = [
    { name: 'veth1', alias: 'net/a/eth0' },
    { name: 'eth0', alias: '' },
  ];
  expect(stillWanted(known, links)).toEqual({
    elements: [set('veth1 net/a/eth0')],
    admissions: [admission('nodeplane "net"')],
  });
  expect(stillWanted(known, [])).toEqual({ elements: [], admissions: [] });
});
