import type { Registry } from 'prom-client';
import { yielder } from '../../core/index.ts';

/** The first page runs code that nothing else has run: metric by metric it is 20 ms, which a probe is not to wait for. */
const SLICE_MS = 5;

/**
 * The page of a registry, as `registry.metrics()` makes it, but in slices between which the event loop runs.
 *
 * @returns in Prometheus's text format 0.0.4
 */
export async function metricsText(registry: Registry): Promise<string> {
  const rest = yielder(SLICE_MS);
  const texts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    const wait = rest();
    if (wait) await wait;
    texts.push(await registry.getSingleMetricAsString(name));
  }
  return `${texts.join('\n\n')}\n`;
}
