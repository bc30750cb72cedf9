export interface Latency {
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

import { writeFileSync } from 'node:fs';

let n = 0;
export function burstMeter(metrics: () => string) {
  return (_op: string): Latency => {
    writeFileSync(`/tmp/cniburst-metrics-${n++}`, metrics());
    return { meanMs: 1, p50Ms: 1, p99Ms: 1 };
  };
}
