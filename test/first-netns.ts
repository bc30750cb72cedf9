import { enterNetns, type NetnsHandle, openNetns } from '../src/sys/index.ts';

// One process runs many files (`isolate: false`), and some of them enter a network namespace, also for good: each begins where the
// first did.
const place = globalThis as { firstNetns?: NetnsHandle };
place.firstNetns ??= openNetns('/proc/thread-self/ns/net');
enterNetns(`/proc/self/fd/${place.firstNetns.fd}`);
