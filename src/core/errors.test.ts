import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { isExists, isNotFound, isUnsupported, KernelError, NodeplaneError } from './errors.ts';

/** What `fn` throws. */
function thrownBy(fn: () => unknown): unknown {
  try {
    fn();
  } catch (error) {
    return error;
  }
  throw new Error('it threw nothing');
}

const kernelError = (name: keyof typeof constants.errno) =>
  new KernelError('ERR_SYSCALL', { operation: 'try', object: 'it', errno: constants.errno[name] });

describe('the kind of an error', () => {
  it('is told of what system calls and netlink refuse', () => {
    expect(isNotFound(kernelError('ENODEV'))).toBe(true);
    expect(isExists(kernelError('EEXIST'))).toBe(true);
    expect(isUnsupported(kernelError('EOPNOTSUPP'))).toBe(true);
    expect(isNotFound(kernelError('EEXIST'))).toBe(false);
  });

  it('is told of what node:fs throws', () => {
    const missing = '/nonexistent/folder';
    expect(existsSync(missing)).toBe(false);
    expect(isNotFound(thrownBy(() => readdirSync(missing)))).toBe(true);
    expect(isExists(thrownBy(() => mkdirSync('/')))).toBe(true);
    expect(isNotFound(thrownBy(() => readFileSync('/')))).toBe(false);
  });

  it('is none of those for anything else', () => {
    const caused = new NodeplaneError('ERR_CONFIG', 'wrong', { cause: kernelError('ENOENT') });
    for (const error of [caused, new Error('ENOENT'), 'ENOENT', undefined, null, { code: 'ENOENT' }]) {
      expect([isNotFound(error), isExists(error), isUnsupported(error)]).toEqual([false, false, false]);
    }
  });
});
