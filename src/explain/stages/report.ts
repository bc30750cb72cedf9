import {
  ANSWER_SCHEMA,
  type Answer,
  type AnswerEndpoint,
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
  /** Command lines, or sentences where none can be told, the first one first. */
  readonly remedy: readonly string[];
}

interface EndpointState {
  readonly endpoint: Omit<AnswerEndpoint, 'problem'>;
  finding: (Finding & { readonly stage: StageName }) | undefined;
  /** Connections that get it fail; whether any do is not known. */
  ifReached?: (Finding & { readonly stage: StageName }) | undefined;
  /** What of it cannot be told. */
  unknown: string | undefined;
}

/** Causes beside the first one that an answer names, each of another code. */
const MOST_ALSO = 3;

/** Gathers what the stages find, in whatever order, and makes the answer of it. */
export class Report {
  readonly #began = performance.now();
  readonly #stages = new Map<StageName, Stage>();
  readonly #fails: Finding[] = [];
  readonly #partly: Finding[] = [];
  readonly #unknown: { readonly text: string; readonly finding?: Finding }[] = [];
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
    this.#unknown.push({ text });
  }

  /** The same for a reason that has a code of its own. */
  cannotTellFor(stage: StageName, finding: Finding): void {
    this.stage(stage, 'unknown', finding.text);
    this.#unknown.push({ text: finding.text, finding });
  }

  /** Connections may get this endpoint; nothing is found of it yet. */
  addEndpoint(endpoint: Omit<AnswerEndpoint, 'problem'>): void {
    this.#endpoints.set(endpoint.address, { endpoint, finding: undefined, unknown: undefined });
  }

  /** This client gets this endpoint and no other. */
  holdAt(address: string): void {
    for (const [other, state] of this.#endpoints) {
      if (other === address) continue;
      this.#endpoints.set(other, { ...state, endpoint: { ...state.endpoint, used: false, reason: 'affinity' } });
    }
  }

  /** Connections that get this endpoint do not work. The first finding counts. */
  failEndpoint(stage: StageName, address: string, finding: Finding, evidence?: readonly Evidence[]): void {
    this.stage(stage, 'fail', `${address}: ${finding.text}`, evidence);
    const state = this.#endpoints.get(address);
    if (!state) this.#fails.push(finding);
    else state.finding ??= { ...finding, stage };
  }

  /**
   * Connections that get this endpoint do not work; whether any do cannot be told, but none get anything else than endpoints.
   *
   * @param text what decides it
   */
  mayFailEndpoint(stage: StageName, address: string, finding: Finding, text: string): void {
    this.cannotTell(stage, text);
    const state = this.#endpoints.get(address);
    if (state) state.ifReached ??= { ...finding, stage };
  }

  cannotTellEndpoint(stage: StageName, address: string, text: string): void {
    this.stage(stage, 'unknown', text);
    const state = this.#endpoints.get(address);
    if (state) state.unknown ??= text;
    else this.#unknown.push({ text });
  }

  /** A report about other ways to the same endpoints, of which nothing is found yet. */
  another(): Report {
    const other = new Report();
    for (const { endpoint } of this.#endpoints.values()) other.addEndpoint(endpoint);
    return other;
  }

  /**
   * Takes over what was found on other ways: what fails on these and not on those fails by chance.
   *
   * @param ways where they lead; `unsure` is what decides which of them is taken, if that is not known
   */
  join(other: Report, ways: readonly { readonly address: string; readonly unsure?: string | undefined }[]): void {
    for (const stage of other.#stages.values()) this.stage(stage.stage, stage.result, stage.text);
    for (const finding of other.#partly) this.#partly.push(finding);
    this.#unknown.push(...other.#unknown);
    for (const text of other.#doubts) if (!this.#doubts.includes(text)) this.#doubts.push(text);
    for (const warning of other.#warnings) {
      if (!this.#warnings.some(({ text }) => text === warning.text)) this.#warnings.push(warning);
    }
    for (const what of other.#notChecked) this.notChecked(what);
    for (const command of other.#askThere) this.askThere(command);
    const { unsure } = ways.find((way) => way.unsure !== undefined) ?? {};
    if (this.#fails.length === 0 || other.#fails.length === 0) {
      for (const finding of [...this.#fails.splice(0), ...other.#fails]) this.#byChance(finding, unsure);
    }
    for (const { address } of ways) {
      const [own, their] = [this.#endpoints.get(address), other.#endpoints.get(address)];
      if (!own || !their) continue;
      own.unknown ??= their.unknown;
      const { finding = their.finding } = own;
      if (!finding || (own.finding && their.finding)) continue;
      own.finding = undefined;
      this.#byChance({ ...finding, text: `${address}: ${finding.text}` }, unsure);
    }
    const isFound = [...this.#endpoints.values()].some(({ finding }) => finding);
    if (!isFound && this.#fails.length + this.#partly.length === 0) this.#nothingFails();
  }

  /**
   * Where some endpoints fail, and others do not, it is not known either that some connections fail, if it is not known
   * which of them they get.
   *
   * @param ways all that lead to endpoints, see `join`
   */
  settle(ways: readonly { readonly address: string; readonly unsure?: string | undefined }[]): void {
    const used = this.#used();
    const broken = used.filter(({ finding }) => finding);
    const { unsure } = ways.find((way) => way.unsure !== undefined) ?? {};
    if (unsure === undefined || broken.length === used.length) return;
    const isBroken = (address: string) => broken.some(({ endpoint }) => endpoint.address === address);
    const sure = new Set(ways.filter((way) => way.unsure === undefined).map(({ address }) => isBroken(address)));
    if (sure.size === 2) return;
    for (const state of broken) {
      const text = `it may be that connections get ${state.endpoint.address}: ${state.finding!.text}, by ${unsure}`;
      this.#unknown.push({ text });
      state.finding = undefined;
    }
    if (broken.length > 0 && this.#fails.length + this.#partly.length === 0) this.#nothingFails();
  }

  /** @param unsure what decides it, if that is not known */
  #byChance(finding: Finding, unsure: string | undefined): void {
    if (unsure === undefined) this.#partly.push({ ...finding, text: `by chance ${finding.text}` });
    else this.#unknown.push({ text: `it may be that ${finding.text}, by ${unsure}` });
  }

  /**
   * Something that decides about what was found is not known: no verdict holds.
   *
   * @param stage where it was met. @default none that is shown
   */
  doubt(text: string, stage?: StageName): void {
    if (stage) this.stage(stage, 'unknown', text);
    this.#doubts.push(text);
  }

  /** What stages found is not certain. */
  #nothingFails(): void {
    for (const [name, stage] of this.#stages) {
      if (stage.result === 'fail') this.#stages.set(name, { ...stage, result: 'unknown' });
    }
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

  answer(): Answer {
    this.#settleLost();
    const { verdict, finding, cause, also } = this.#judge();
    const endpoints = [...this.#endpoints.values()].map(({ endpoint, finding: own }) => ({
      ...endpoint,
      problem: own?.code ?? null,
    }));
    const asked = verdict === 'unknown' ? this.#askThere : [];
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
      seen: [],
      remedy: [...new Set(finding ? finding.remedy : asked)],
      notChecked: this.#notChecked,
      tookMs: Math.round((performance.now() - this.#began) * 10) / 10,
    };
  }

  /** Where no endpoint works, it does not matter which of them connections get. */
  #settleLost(): void {
    const used = this.#used();
    if (used.every(({ finding, ifReached }) => finding ?? ifReached))
      for (const state of used) state.finding ??= state.ifReached;
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
    const unknown = used.filter(({ finding, unknown: reason }) => !finding && reason !== undefined);
    if (first && all.length > 0) return { verdict: 'fails', finding: first, cause: `${first.text}.`, also };
    if (first) {
      const [further] = this.#unknown;
      const untold = unknown.length > 0 ? `; of ${unknown.length} it cannot be told` : '';
      const others = further ? `; whether others work cannot be told: ${further.text}` : untold;
      return { verdict: 'partly', finding: first, cause: `${first.text}${others}.`, also };
    }
    const [unsure] = this.#unknown;
    if (unsure) {
      const { text, finding } = unsure;
      return { verdict: 'unknown', ...(finding && { finding }), cause: `Cannot tell: ${text}.`, also };
    }
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
