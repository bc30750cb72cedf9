import { expect, it } from 'vitest';
import { UndoStack } from './undo.ts';

it('takes steps back in reverse, all of them, and once', () => {
  const undo = new UndoStack();
  const taken: string[] = [];
  const reports: string[] = [];
  undo.add('first', () => taken.push('first'));
  undo.add('second', () => {
    throw new Error('busy');
  });
  undo.add('third', () => taken.push('third'));
  undo.run((message) => reports.push(message));
  expect(taken).toEqual(['third', 'first']);
  expect(reports).toEqual(['Cannot undo "second": busy']);
  undo.run((message) => reports.push(message));
  expect(taken).toHaveLength(2);
});
