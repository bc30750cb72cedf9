// What a repair of a table would write, told as differences. An entrance of its own, so that programs that print nothing go without.
export { changesDrift } from './changes-drift.ts';
export { trialOf } from './trial.ts';
