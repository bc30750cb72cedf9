import { expect, it } from 'vitest';
import { runDemo } from './demo.ts';

it('says so when this installation has no demo', async () => {
  // Running from source there is no built program beside demo.ts.
  await expect(runDemo([])).rejects.toMatchObject({
    code: 'ERR_EXEC',
    message: expect.stringContaining('this installation has none at "'),
  });
});
