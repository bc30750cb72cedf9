import fc from 'fast-check';

// Random tests draw the same cases on every run, so that whether a change passes is no matter of luck. `npm run test:random`
// draws new ones; a failure prints its seed, and NODEPLANE_SEED=<seed> draws its cases again.
const { NODEPLANE_SEED = '20261122' } = process.env;
if (NODEPLANE_SEED !== 'random') fc.configureGlobal({ seed: Number(NODEPLANE_SEED) });
