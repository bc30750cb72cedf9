import { expect, it } from 'vitest';
import { loadReassertion } from '../../../cni/index.ts';
import { JournalRules, type NetworkEntry } from './journal-rules.ts';

const { featuresOf } = await loadReassertion();
const NOTE = { ipMasq: true, firewall: true, ips: ['10.244.1.2/24'], mac: '0a:58:0a:f4:01:02' };
const maker = { bootId: 'x', process: '1:2', pidns: undefined, netns: undefined, begunMs: 0 };
const entry = (name: string, change: Partial<NetworkEntry> = {}): NetworkEntry => ({
  network: 'net',
  name,
  owner: { containerId: name, ifname: 'eth0' },
  addresses: [],
  features: ['masquerade'],
  note: NOTE,
  maker,
  complete: true,
  ...change,
});
const commentsOf = ({ elements }: ReturnType<typeof featuresOf>) =>
  elements.flatMap((set) => set.elements.map(({ comment }) => comment?.split(' ')[1]));

it('wants what the journal notes of attachments that stand', () => {
  const entries = [
    entry('stands'),
    entry('link-gone'),
    entry('half-made', { complete: false }),
    entry('of-an-earlier-version', { note: undefined }),
    entry('spoilt', { note: { ...NOTE, ips: 'x' } }),
  ];
  const links = new Set(['stands', 'half-made', 'of-an-earlier-version', 'spoilt', 'eth0']);
  const wanted = new JournalRules(featuresOf).of(entries, links);
  expect(commentsOf(wanted)).toEqual(['net/stands/eth0']);
  expect(wanted.admissions.map(({ comment }) => comment)).toEqual(['nodeplane-cni net', 'nodeplane-cni net']);
});

it('works out once what did not change', () => {
  let worked = 0;
  const rules = new JournalRules((attachments) => {
    worked += attachments.length;
    return featuresOf(attachments);
  });
  const links = new Set(['a', 'b']);
  const both = [entry('a'), entry('b')];
  expect(rules.of(both, links)).toEqual(rules.of(both, links));
  expect(worked).toBe(2);
  // Attached anew meanwhile, with another address.
  const anew = rules.of([entry('a'), entry('b', { note: { ...NOTE, ips: ['10.244.1.9/24'] } })], links);
  expect(worked).toBe(3);
  expect(anew.elements.flatMap(({ elements }) => elements.map(({ key }) => key[3]))).toEqual([2, 9]);
  rules.of([], links);
  rules.of(both, links);
  expect(worked).toBe(5);
});
