import type { LoadOptions, LoadReport, Outcome, ServerReport, Target } from './protocol.ts';

const TICK_MS = 5;
/** A load looks for connections that are not made. On a busy machine a server may get no processor for seconds. */
const ANSWER_MS = 10_000;

export interface RunningLoad {
  report(): LoadReport;
  /** Begins nothing new, waits for what is under way, and reports. */
  stop(): Promise<LoadReport>;
}

/** Begins `perSecond` new requests each second, evenly, however long each takes. */
export function runLoad(
  target: Target,
  options: LoadOptions,
  request: (target: Target, options: LoadOptions) => Promise<Outcome>,
): RunningLoad {
  const perSecond = options.perSecond ?? 100;
  const servers: Record<string, ServerReport> = {};
  const failures: { startedAt: number; outcome: Outcome }[] = [];
  const underWay = new Set<Promise<void>>();
  const startedAt = performance.now();
  let started = 0;
  let answered = 0;
  let brokenBy: unknown;

  const one = async () => {
    const at = Date.now();
    const outcome = await request(target, { answerMs: ANSWER_MS, ...options });
    if (outcome.kind !== 'answered') {
      failures.push({ startedAt: at, outcome });
      return;
    }
    answered++;
    const before = servers[outcome.by];
    servers[outcome.by] = {
      answers: (before?.answers ?? 0) + 1,
      lastStartedAt: Math.max(before?.lastStartedAt ?? 0, at),
      lastAnsweredAt: Date.now(),
    };
  };
  const tick = () => {
    // By the clock, not by the number of ticks: a late timer is made up for.
    const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond) + 1;
    for (; started < due; started++) {
      const running = one().catch((error) => {
        brokenBy = error;
      });
      underWay.add(running);
      void running.finally(() => underWay.delete(running));
    }
  };
  tick();
  const timer = setInterval(tick, TICK_MS);
  const report = (): LoadReport => {
    if (brokenBy !== undefined) throw brokenBy;
    return { started, answered, servers: { ...servers }, failures: [...failures] };
  };
  return {
    report,
    async stop() {
      clearInterval(timer);
      await Promise.all(underWay);
      return report();
    },
  };
}
