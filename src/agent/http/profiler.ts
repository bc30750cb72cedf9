import { Session } from 'node:inspector/promises';
import { type Clock, sleep } from '../../core/index.ts';
import { type HttpAnswer, type HttpRequest, textAnswer } from './http-listener.ts';
import type { Pages } from './http-server.ts';
import { toLocal } from './local-clients.ts';

/** As Go's: one sample for so many allocated bytes. */
const HEAP_SAMPLE_BYTES = 512 * 1024;
const DEFAULT_SECONDS = 30;
/** A sampled process is a slower one; nobody may keep it so. */
const LONGEST_SECONDS = 60;

const INDEX = `/debug/pprof/profile?seconds=${DEFAULT_SECONDS}  where the processor's time goes (save as .cpuprofile)
/debug/pprof/heap                 what holds memory, by where it was allocated (save as .heapprofile)

Chrome's DevTools and VS Code open both.
`;

/**
 * The pages of --profiling, at the paths of Go's profiler but in V8's forms. They are answered to clients on this machine only,
 * wherever the metrics server listens: a profile costs time, and tells how the program is made. It does not tell what is in
 * memory, as a heap snapshot would, with the credentials for the API server.
 */
export class Profiler {
  readonly #clock: Clock;
  readonly #session = new Session();
  #busy = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins to sample allocations: only what was allocated since then is in the profile of the heap. */
  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post('HeapProfiler.enable');
    await this.#session.post('HeapProfiler.startSampling', { samplingInterval: HEAP_SAMPLE_BYTES });
    await this.#session.post('Profiler.enable');
  }

  stop(): void {
    this.#session.disconnect();
  }

  readonly pages: Pages = {
    '/debug/pprof/': (request) => toLocal(request, () => textAnswer(200, INDEX)),
    '/debug/pprof/heap': (request) => toLocal(request, () => this.#heap()),
    '/debug/pprof/profile': (request) => toLocal(request, () => this.#processor(request)),
  };

  async #heap(): Promise<HttpAnswer> {
    const { profile } = await this.#session.post('HeapProfiler.getSamplingProfile');
    return download('nodeplane.heapprofile', profile);
  }

  async #processor({ query }: HttpRequest): Promise<HttpAnswer> {
    const asked = query.get('seconds') ?? String(DEFAULT_SECONDS);
    const seconds = Number(asked);
    if (!(seconds > 0 && seconds <= LONGEST_SECONDS)) {
      return textAnswer(400, `seconds=${asked} is not a number up to ${LONGEST_SECONDS}\n`);
    }
    if (this.#busy) return textAnswer(409, 'Another profile is being taken; try again later\n');
    this.#busy = true;
    try {
      await this.#session.post('Profiler.start');
      await sleep(this.#clock, seconds * 1000);
      const { profile } = await this.#session.post('Profiler.stop');
      return download('nodeplane.cpuprofile', profile);
    } finally {
      this.#busy = false;
    }
  }
}

function download(name: string, profile: object): HttpAnswer {
  return {
    status: 200,
    headers: {
      'Content-Type': 'application/json',
      'Content-Disposition': `attachment; filename="${name}"`,
      'X-Content-Type-Options': 'nosniff',
    },
    body: JSON.stringify(profile),
  };
}
