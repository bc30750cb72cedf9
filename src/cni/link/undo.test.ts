import { expect, it } from 'vitest';
import { UndoStack } from './undo.ts';

it('takes steps back in reverse, all of them, and once', async () => {
  const undo = new UndoStack();
  const taken: string[] = [];
  const reports: string[] = [];
  undo.add('first', () => void taken.push('first'));
  undo.add('second', () => {
    throw new Error('busy');
  });
  undo.add('third', async () => void taken.push('third'));
  await undo.run((message) => reports.push(message));
  expect(taken).toEqual(['third', 'first']);
  expect(reports).toEqual(['Cannot undo "second": busy']);
  await undo.run((message) => reports.push(message));
  expect(taken).toHaveLength(2);
});
