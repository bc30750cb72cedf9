import { expect, it } from 'vitest';
import { atOnce } from '../../core/index.ts';
import { ClaimedTree } from './claims.ts';

const key = (text: string) => ({ text, bits: Uint8Array.from(text, Number) });
const tree = () => new ClaimedTree({ match: () => '', chainName: () => 'unused' });

it('gives a key to the claimant that sorts first, and to the next when it leaves', () => {
  const claimed = tree();
  claimed.claim('b', key('01'), 'rule of b');
  expect(atOnce(claimed.changes()).root).toEqual(['rule of b']);
  claimed.claim('c', key('01'), 'rule of c');
  expect(atOnce(claimed.changes()).root).toBeUndefined();
  claimed.claim('a', key('01'), 'rule of a');
  expect(atOnce(claimed.changes()).root).toEqual(['rule of a']);
  claimed.release('b', key('01'));
  claimed.release('a', key('01'));
  expect(atOnce(claimed.changes()).root).toEqual(['rule of c']);
  claimed.release('c', key('01'));
  expect(atOnce(claimed.changes()).root).toEqual([]);
});

it('changes nothing while claimants want the same rule, or for a release nobody asked for', () => {
  const claimed = tree();
  for (const owner of ['b', 'a', 'c']) claimed.claim(owner, key('01'), 'same');
  expect(atOnce(claimed.changes()).root).toEqual(['same']);
  claimed.release('a', key('01'));
  claimed.release('x', key('22'));
  expect(atOnce(claimed.changes()).root).toBeUndefined();
});

// What looks at all claimants for each takes minutes.
it('settles 30,000 claimants of one key', { timeout: 30_000 }, () => {
  const claimed = tree();
  const owner = (n: number) => `ns/service-${String(n).padStart(5, '0')}`;
  for (let n = 0; n < 30_000; n++) claimed.claim(owner(n), key('0'), `rule of ${n}`);
  expect(atOnce(claimed.changes()).root).toEqual(['rule of 0']);
  for (let n = 0; n < 3000; n++) claimed.release(owner(n), key('0'));
  expect(atOnce(claimed.changes()).root).toEqual(['rule of 3000']);
});
