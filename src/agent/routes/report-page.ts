import { errorText, type IpFamily, inSlices, type Steps } from '../../core/index.ts';
import { type DatedStanding, ROUTE_LIMITS, type RouteObserver } from '../../routes/index.ts';
import type { HttpAnswer } from '../http/http-listener.ts';
import type { Pages } from '../http/http-server.ts';
import { toLocal } from '../http/local-clients.ts';
import { type FamilyReport, leftOutFirst, nodeReport, type RoutesReport } from './report.ts';

/** The routes of one family, as far as they are told. */
export interface ReportedFamily {
  readonly family: IpFamily;
  standings(): ReadonlyMap<string, DatedStanding>;
}

export interface ReportPageOptions extends Pick<RoutesReport, 'node' | 'mode'> {
  /** Asked for each answer. */
  readonly families: () => readonly ReportedFamily[];
}

interface Problem {
  readonly text: string;
  /** This node has nothing to do in the family, for now. */
  readonly isWaiting: boolean;
}

/** Where the metrics port shows it. */
export const REPORT_PATH = '/routes';

/**
 * The page that tells `nodeplane routes` what the kernel does not know. It names all Nodes with their addresses, and so answers
 * clients on this machine only. Thousands of Nodes are written in slices, once for all who ask meanwhile.
 */
export class ReportPage {
  readonly #options: ReportPageOptions;
  readonly #problems = new Map<IpFamily, Problem>();
  #answer: Promise<HttpAnswer> | undefined;

  constructor(options: ReportPageOptions) {
    this.#options = options;
  }

  readonly pages: Pages = { [REPORT_PATH]: (request) => toLocal(request, () => this.#answered()) };

  /** Remembers what keeps the routes of a family from being right. */
  readonly observe: RouteObserver = (event) => {
    const { kind, family } = event;
    if (kind === 'waiting') this.#problems.set(family, { text: event.reason, isWaiting: true });
    if (kind === 'syncFailed') this.#problems.set(family, { text: errorText(event.error), isWaiting: false });
    if (kind === 'synced') this.#problems.delete(family);
  };

  /** What keeps the routes of a family from being right; undefined: nothing. */
  problem(family: IpFamily): string | undefined {
    return this.#problems.get(family)?.text;
  }

  /** A family that the cluster does not use waits for ever, and nobody misses it. */
  #toldProblem(family: IpFamily): string | undefined {
    const problem = this.#problems.get(family);
    const isServed = this.#options.families().some((other) => !this.#problems.has(other.family));
    return problem?.isWaiting && isServed ? undefined : problem?.text;
  }

  #answered(): Promise<HttpAnswer> {
    this.#answer ??= inSlices(this.#write()).finally(() => {
      this.#answer = undefined;
    });
    return this.#answer;
  }

  *#write(): Steps<HttpAnswer> {
    const { node, mode, families } = this.#options;
    const written: string[] = [];
    for (const { family, standings } of families().map((one) => ({ family: one.family, standings: one.standings() }))) {
      const head: Omit<FamilyReport, 'nodes'> = {
        family,
        problem: this.#toldProblem(family) ?? null,
        total: standings.size,
      };
      const nodes: string[] = [];
      for (const [name, standing] of leftOutFirst(standings)) {
        if (nodes.length === ROUTE_LIMITS.standingsTold) break;
        nodes.push(JSON.stringify(nodeReport(name, standing)));
        yield;
      }
      written.push(`${JSON.stringify(head).slice(0, -1)},"nodes":[${nodes.join()}]}`);
      yield;
    }
    const head: Omit<RoutesReport, 'families'> = { node, mode };
    const body = `${JSON.stringify(head).slice(0, -1)},"families":[${written.join()}]}\n`;
    return {
      status: 200,
      headers: { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff' },
      body,
    };
  }
}
