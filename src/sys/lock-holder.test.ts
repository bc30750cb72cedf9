import { expect, it } from 'vitest';
import { lockHoldersOf, parseFlocks } from './lock-holder.ts';

it('finds the granted flocks, and neither who waits nor other kinds of locks', () => {
  const text = `1: POSIX  ADVISORY  WRITE 411 00:19:1043 0 EOF
2: FLOCK  ADVISORY  WRITE 16134 fe:00:2154728 0 EOF
2: -> FLOCK  ADVISORY  WRITE 16200 fe:00:2154728 0 EOF
3: LEASE  ACTIVE    READ  7 fe:00:5 0 EOF
`;
  expect(parseFlocks(text)).toEqual([{ pid: 16134, inode: 2154728 }]);
});

it('has nobody to name for a file that is not there', () => {
  expect(lockHoldersOf('/nonexistent/xtables.lock')).toEqual([]);
});
