import {
  ANSWER_SCHEMA,
  type Answer,
  type AnswerEndpoint,
  CAUSES,
  type CauseCode,
  CODES_PAGE,
  type Evidence,
  type FurtherCause,
  STAGES,
  type Stage,
  type StageName,
  type StageResult,
  type Verdict,
} from '../answer/index.ts';

/** What is wrong, in numbers and names of this case. */
export interface Finding {
  readonly code: CauseCode;
  readonly text: string;
  /** Command lines or sentences, the first one first. @default that of the code */
  readonly remedy?: readonly string[];
}

interface EndpointState {
  readonly endpoint: Omit<AnswerEndpoint, 'problem'>;
  finding: (Finding & { readonly stage: StageName }) | undefined;
  /** What of it cannot be told. */
  unknown: string | undefined;
}

/** Everything else than an endpoint's own. */
const MOST_ALSO = 3;

/** Gathers what the stages find, in whatever order, and makes the answer of it. */
export class Report {
  readonly #began = performance.now();
  readonly #stages = new Map<StageName, Stage>();
  readonly #fails: Finding[] = [];
  readonly #partly: Finding[] = [];
  readonly #unknown: string[] = [];
  readonly #doubts: string[] = [];
  readonly #warnings: FurtherCause[] = [];
  readonly #notChecked: string[] = [];
  readonly #askThere: string[] = [];
  readonly #endpoints = new Map<string, EndpointState>();
  question: Answer['question'] = { from: 'any pod', to: '', protocol: '', family: '' };

  /** Told twice, the worse result stays. */
  stage(stage: StageName, result: StageResult, text: string, evidence: readonly Evidence[] = []): void {
    const rank: Record<StageResult, number> = { fail: 3, unknown: 2, ok: 1, 'not-reached': 0 };
    const before = this.#stages.get(stage);
    if (before && rank[before.result] > rank[result]) return;
    this.#stages.set(stage, { stage, result, text, evidence: [...(before?.evidence ?? []), ...evidence] });
  }

  /** No connection works. */
  fail(stage: StageName, finding: Finding, evidence?: readonly Evidence[]): void {
    this.stage(stage, 'fail', finding.text, evidence);
    this.#fails.push(finding);
  }

  /** Some connections do not work, whatever the endpoint. */
  failPartly(stage: StageName, finding: Finding, evidence?: readonly Evidence[]): void {
    this.stage(stage, 'fail', finding.text, evidence);
    this.#partly.push(finding);
  }

  /** It cannot be told whether connections work. */
  cannotTell(stage: StageName, text: string, evidence?: readonly Evidence[]): void {
    this.stage(stage, 'unknown', text, evidence);
    this.#unknown.push(text);
  }

  /** A pod is one of several. */
  addEndpoint(endpoint: Omit<AnswerEndpoint, 'problem'>): void {
    this.#endpoints.set(endpoint.address, { endpoint, finding: undefined, unknown: undefined });
  }

  /** Connections that get this endpoint do not work. The first finding counts. */
  failEndpoint(stage: StageName, address: string, finding: Finding, evidence?: readonly Evidence[]): void {
    this.stage(stage, 'fail', `${address}: ${finding.text}`, evidence);
    const state = this.#endpoints.get(address);
    if (!state) this.#fails.push(finding);
    else state.finding ??= { ...finding, stage };
  }

  cannotTellEndpoint(stage: StageName, address: string, text: string): void {
    this.stage(stage, 'unknown', text);
    const state = this.#endpoints.get(address);
    if (state) state.unknown ??= text;
    else this.#unknown.push(text);
  }

  /** Something that decides about what was found is not known: no verdict holds. */
  doubt(text: string): void {
    this.#doubts.push(text);
  }

  /** Where to ask on, when the answer is UNKNOWN. */
  askThere(command: string): void {
    if (!this.#askThere.includes(command)) this.#askThere.push(command);
  }

  warn(code: CauseCode, text: string): void {
    this.#warnings.push({ code, text });
  }

  notChecked(what: string): void {
    if (!this.#notChecked.includes(what)) this.#notChecked.push(what);
  }

  /** Whether a cause was found that no later stage can make undone. */
  get hasFailed(): boolean {
    const used = this.#used();
    return this.#fails.length > 0 || (used.length > 0 && used.every(({ finding }) => finding));
  }

  get usedCount(): number {
    return this.#used().length;
  }

  /** Frames of both pods pass by the rules. */
  onBridge(address: string, setting: string, bridge: string): void {
    const text = `both pods are on ${bridge}, and ${setting}: answers of ${address} are not translated back`;
    const remedy = ['modprobe br_netfilter; sysctl -w net.bridge.bridge-nf-call-iptables=1'];
    this.failEndpoint('link', address, { code: 'bridge-nf', text, remedy });
  }

  answer(): Answer {
    const { verdict, finding, cause, also } = this.#judge();
    const endpoints = [...this.#endpoints.values()].map(({ endpoint, finding: own }) => ({
      ...endpoint,
      problem: own?.code ?? null,
    }));
    const code = finding?.code ?? (verdict === 'unknown' ? 'cannot-tell' : null);
    return {
      schema: ANSWER_SCHEMA,
      question: this.question,
      verdict,
      code,
      cause,
      page: code && `${CODES_PAGE}#${code}`,
      endpoints,
      path: STAGES.map((name) => this.#shown(name)),
      also,
      warnings: this.#warnings,
      remedy: finding ? (finding.remedy ?? [CAUSES[finding.code].remedy]) : verdict === 'unknown' ? this.#askThere : [],
      notChecked: this.#notChecked,
      tookMs: Math.round((performance.now() - this.#began) * 10) / 10,
    };
  }

  #shown(name: StageName): Stage {
    const stage = this.#stages.get(name);
    if (!stage) return { stage: name, result: 'not-reached', text: 'not reached', evidence: [] };
    return stage.result === 'fail' && this.#doubts.length > 0 ? { ...stage, result: 'unknown' } : stage;
  }

  #used(): readonly EndpointState[] {
    return [...this.#endpoints.values()].filter(({ endpoint }) => endpoint.used);
  }

  #judge(): { verdict: Verdict; finding?: Finding; cause: string; also: readonly FurtherCause[] } {
    const used = this.#used();
    const broken = used.filter(({ finding }) => finding);
    const ofEndpoints = broken.map(({ endpoint, finding }) => ({
      ...finding!,
      text: `${used.length > 1 ? `${broken.length} of ${used.length} endpoints fail: ` : ''}${endpoint.address}: ${finding!.text}`,
    }));
    const all = [...this.#fails, ...(broken.length === used.length ? ofEndpoints : [])];
    const some = [...this.#partly, ...(broken.length < used.length ? ofEndpoints : [])];
    const [first, ...more] = [...all, ...some];
    const also = distinct(more.filter(({ code }) => code !== first?.code)).slice(0, MOST_ALSO);
    const [doubt] = this.#doubts;
    if (doubt !== undefined) {
      const otherwise = first ? ` If that changes nothing: ${first.text}.` : '';
      return { verdict: 'unknown', cause: `Cannot tell: ${doubt}.${otherwise}`, also: [] };
    }
    if (first) return { verdict: all.length > 0 ? 'fails' : 'partly', finding: first, cause: `${first.text}.`, also };
    const unknown = used.filter((state) => state.unknown !== undefined);
    const [reason] = this.#unknown;
    if (reason !== undefined) return { verdict: 'unknown', cause: `Cannot tell: ${reason}.`, also };
    if (unknown.length > 0) {
      const text = `${used.length - unknown.length} of ${used.length} endpoints work; of ${unknown.length} it cannot be told: ${unknown[0]!.unknown}`;
      return { verdict: 'unknown', cause: `${text}.`, also };
    }
    const cause = used.length > 0 ? `${used.length} of ${used.length} endpoints work.` : 'The connection works.';
    return { verdict: 'works', cause, also };
  }
}

function distinct(findings: readonly Finding[]): readonly FurtherCause[] {
  const byCode = new Map<CauseCode, FurtherCause>();
  for (const { code, text } of findings) if (!byCode.has(code)) byCode.set(code, { code, text });
  return [...byCode.values()];
}
