import { describe, expect, it } from 'vitest';
import type { LeftOutPort } from './dataplane.ts';
import { LeftOutPorts } from './left-out.ts';

const REFUSED = new Error('refused');
const ports = (...keys: readonly string[]) => new Map(keys.map((key): [string, LeftOutPort] => [key, port(key)]));
const port = (key: string): LeftOutPort => ({ key, name: key, reason: 'refused' });

/** A kernel that refuses these ports, names some of them, and finds the others when they are tried out. */
function setup(bad: readonly string[], named: readonly string[], isRefusal = true) {
  const leftOut = new LeftOutPorts();
  const done: string[] = [];
  const present = (keys: readonly string[]) => keys.filter((key) => bad.includes(key) && !leftOut.has(key));
  const commit = () =>
    leftOut.commitRest(
      async () => {
        done.push('attempt');
        if (present(bad).length > 0) throw REFUSED;
        return 'committed';
      },
      {
        isRefusal: () => isRefusal,
        named: () => ports(...present(named).slice(0, 1)),
        async tryOut() {
          done.push('trial');
          return ports(...present(bad));
        },
      },
    );
  return { leftOut, done, commit };
}

describe('LeftOutPorts', () => {
  it('leaves out what errors name, one after the other, and commits the rest', async () => {
    const { leftOut, done, commit } = setup(['c', 'a'], ['c', 'a']);
    expect(await commit()).toBe('committed');
    expect(leftOut.list().map(({ key }) => key)).toEqual(['a', 'c']);
    expect(done).toEqual(['attempt', 'attempt', 'attempt']);
  });

  it('tries the ports out when an error names none', async () => {
    const { leftOut, done, commit } = setup(['a', 'b'], ['b']);
    await commit();
    expect(leftOut.list()).toHaveLength(2);
    expect(done).toEqual(['attempt', 'attempt', 'trial', 'attempt']);
  });

  it('tries them out too when many errors name one each', async () => {
    const many = Array.from({ length: 50 }, (_, n) => `p${n}`);
    const { leftOut, done, commit } = setup(many, many);
    await commit();
    expect(leftOut.list()).toHaveLength(50);
    expect(done.length).toBeLessThan(15);
  });

  it('throws what is nobody’s fault', async () => {
    await expect(setup(['a'], ['a'], false).commit()).rejects.toBe(REFUSED);
    const { leftOut } = setup([], []);
    const blame = { isRefusal: () => true, named: () => ports(), tryOut: async () => ports() };
    await expect(leftOut.leaveOut(REFUSED, blame)).rejects.toBe(REFUSED);
    await expect(leftOut.commitRest(() => Promise.reject(REFUSED), blame)).rejects.toBe(REFUSED);
  });

  it('gives up when what was found by trial is not what is refused', async () => {
    const { leftOut } = setup([], []);
    let trials = 0;
    const tryOut = async () => ports(`p${trials++}`);
    const blame = { isRefusal: () => true, named: () => ports(), tryOut };
    await expect(leftOut.commitRest(() => Promise.reject(REFUSED), blame)).rejects.toBe(REFUSED);
    expect(trials).toBe(1);
  });
});
