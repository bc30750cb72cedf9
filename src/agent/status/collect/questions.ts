import { durationText, type IpFamily, shellWord } from '../../../core/index.ts';
import { countUnusable, problemText, type SourceProblem } from '../../../kube/index.ts';
import { REMOVE_LEFT_ROUTES } from '../../left/left-routes.ts';
import { type Problem, QUESTIONS, type Question, type QuestionId } from '../status.ts';
import { byteText, countText, secondsText } from '../words.ts';
import type { StatusFacts, WatchAge } from './facts.ts';

/** The API server sends something about each resource every minute or so; the alert waits as long. */
const UNHEARD_SECONDS = 600;
/** At its start an agent has what pods need within that time; until then it is no problem. */
const STARTED_SECONDS = 30;
/** From here on new connections soon find no room, and the kernel begins to drop old ones. */
const CONNTRACK_FULL = 0.9;

/** What a question comes to. */
interface Answer extends Omit<Question, 'id' | 'title' | 'verdict'> {
  /** Where there are no problems. @default ok */
  readonly verdict?: 'none';
  readonly problems?: readonly Omit<Problem, 'question'>[];
  /** Problems beside these, which are not told: there are too many. @default 0 */
  readonly untold?: number;
}

const TITLES: Readonly<Record<QuestionId, string>> = {
  agent: 'Agent',
  write: 'Last write',
  api: 'API server',
  services: 'Services here',
  rules: 'Rules in the kernel',
  conntrack: 'Connection tracking',
  nodes: 'Other nodes',
  changes: 'Lately changed',
};

const ANSWERS: Readonly<Record<QuestionId, (facts: StatusFacts) => Answer>> = {
  agent,
  write,
  api,
  services,
  rules,
  conntrack,
  nodes,
  changes,
};

/** The eight answers, and what is behind those that are bad: of very many problems some, and the number of all. Pure. */
export function answerAll(facts: StatusFacts): {
  readonly questions: readonly Question[];
  readonly problems: readonly Problem[];
  readonly problemsTotal: number;
} {
  const problems: Problem[] = [];
  let problemsTotal = 0;
  const questions = QUESTIONS.map((id): Question => {
    const { problems: found = [], untold = 0, verdict = 'ok', ...answer } = ANSWERS[id](facts);
    problems.push(...found.map((one) => ({ question: id, ...one })));
    problemsTotal += found.length + untold;
    return { id, title: TITLES[id], verdict: found.length > 0 ? 'problem' : verdict, ...answer };
  });
  return { questions, problems, problemsTotal };
}

function agent({
  version,
  mode,
  upSeconds,
  memory,
  healthy,
  standsByFor,
  families,
  addresses,
  pods,
  leftNetwork,
  ports,
  commands,
}: StatusFacts): Answer {
  const problems = [];
  if (!healthy && standsByFor === '') {
    const message =
      families.length === 0
        ? 'It does not serve Services: it waits for the objects, or for what its mode needs of the kernel'
        : 'It does not keep up: a sync that is wanted has not succeeded in time';
    problems.push({ message, command: ports.health === '' ? commands.diff : `curl -s ${ports.health}/healthz` });
  }
  if (addresses && addresses.lacking !== '') {
    problems.push({ message: `New pods get no address: ${addresses.lacking}`, command: commands.ipam });
  } else if (pods.lacks !== '' && standsByFor === '' && upSeconds > STARTED_SECONDS) {
    problems.push({ message: `Pods cannot be made: ${pods.lacks}`, command: commands.diff });
  }
  if (pods.elsewhere !== '') {
    problems.push({ message: `New pods get another network: ${pods.elsewhere}`, command: commands.preflight });
  }
  if (leftNetwork !== '') {
    const message = `Pods can be neither made nor removed: an agent with --cni has left "${leftNetwork}", and this one has no --cni`;
    problems.push({ message, command: `ls -l ${shellWord(leftNetwork)}` });
  }
  const standing = standsByFor && `stands by: ${standsByFor} works on this node`;
  const detail = [standing, `version ${version}`, `mode ${mode}`, families.map(({ family }) => family).join(' and ')];
  return {
    value: memory,
    figure: byteText(memory),
    detail: detail.filter(Boolean).join(', '),
    ageSeconds: upSeconds,
    problems,
  };
}

function write({ families, age, ports }: StatusFacts): Answer {
  const problems = families.flatMap(({ family, failing }) =>
    failing
      ? [
          {
            message: `${family}: for ${durationText(age(failing.since))} now, ${failing.reason}`,
            command: `curl -s ${ports.metrics}/metrics | grep nodeplane_sync_failures_total`,
          },
        ]
      : [],
  );
  const written = families.flatMap((record) => record.written ?? []);
  const last = written.reduce<(typeof written)[number] | undefined>(
    (newest, one) => (newest && newest.at > one.at ? newest : one),
    undefined,
  );
  if (!last)
    return { value: null, figure: '–', detail: 'nothing was written yet', ageSeconds: null, verdict: 'none', problems };
  const detail = `${countText(last.ports, 'Service port')} written${problems.length > 0 ? '; what it wrote stays in force' : ''}`;
  return {
    value: last.seconds,
    figure: secondsText(last.seconds),
    detail,
    ageSeconds: age(last.at),
    problems,
  };
}

/** Mistakes in objects that are told. */
const MOST_MISTAKES = 10;

function api({ api: source, objectProblems, manifests }: StatusFacts): Answer {
  const doubts = objectProblems.filter(({ inForce }) => inForce);
  // That a resource is not read at all is no fault of an object, and told with the server.
  const refused = objectProblems.filter(({ inForce, unread }) => !inForce && !unread);
  const mistakes = [...refused, ...doubts];
  const told = mistakes.slice(0, MOST_MISTAKES).map((problem) => ({
    message: problem.inForce
      ? `Probably not meant: ${problemText(problem)}`
      : `Cannot be read: ${problemText(problem)}; its last good state is in force`,
    command: source ? `kubectl get ${kubectlWords(problem)} -o yaml` : fileCommand(manifests, problem.where),
  }));
  const untold = mistakes.length - told.length;
  const unusable = countUnusable(refused);
  const unreadable = [
    unusable > 0 && `, ${countText(unusable, 'object')} cannot be read`,
    doubts.length > 0 && `, ${countText(doubts.length, 'value')} probably not meant`,
  ]
    .filter(Boolean)
    .join('');
  if (!source) {
    const detail = `objects come from a directory of manifests${unreadable}`;
    const value = objectProblems.length;
    return { value, figure: '–', detail, ageSeconds: null, verdict: 'none', problems: told, untold };
  }
  const { server, watches } = source;
  const oldest = watches.reduce((most, { seconds }) => Math.max(most, seconds), 0);
  const problems = [...told, ...ofServer(server, watches, objectProblems)];
  const detail = `${watches.length} resources of ${server} followed${unreadable}`;
  return { value: watches.length, figure: String(watches.length), detail, ageSeconds: oldest, problems, untold };
}

/** What was not heard of the API server for long, and what cannot be read of it now. */
function ofServer(server: string, watches: readonly WatchAge[], problems: readonly SourceProblem[]) {
  const command = `curl -k ${shellWord(`${server.replace(/\/$/, '')}/readyz`)}`;
  const silent = watches.flatMap(({ resource, seconds }) =>
    seconds > UNHEARD_SECONDS
      ? [`Nothing was heard about ${resource} for ${durationText(seconds)}: what is known may be as old`]
      : [],
  );
  const unread = problems.filter((problem) => problem.unread).map(problemText);
  const nothing = watches.length === 0 && unread.length === 0 ? ['It was not heard yet'] : [];
  return [...silent, ...unread, ...nothing].map((message) => ({ message, command }));
}

function services({ services: { counts, troubled }, families, age, commands }: StatusFacts): Answer {
  const problems = troubled.map((name) => {
    const texts = families.flatMap(({ family, leftOut, problems: known }) => [
      ...[...leftOut.values()]
        .filter(({ key }) => key.startsWith(`${name}:`))
        .map(({ name: port, reason }) => `${port} is not programmed in ${family}: ${reason}`),
      ...(known.get(name) ?? []).slice(0, 1).map((text) => `${name}, ${family}: ${text}`),
    ]);
    return { message: texts[0] ?? name, command: commands.services(name) };
  });
  const served = counts.total - counts.refused - counts.dropped - counts.troubled;
  const others = [
    counts.refused > 0 && `${counts.refused} without any endpoint`,
    counts.dropped > 0 && `${counts.dropped} with none on this node under policy Local`,
    counts.troubled > 0 && `${counts.troubled} not, or not all, served`,
  ].filter(Boolean);
  const last = Math.max(...families.map(({ written }) => written?.at ?? Number.NEGATIVE_INFINITY));
  return {
    value: served,
    figure: `${served} of ${counts.total}`,
    detail: others.length > 0 ? `have endpoints; ${others.join(', ')}` : 'have endpoints for this node',
    ageSeconds: Number.isFinite(last) ? age(last) : null,
    problems,
    untold: Math.max(0, counts.troubled - troubled.length),
  };
}

function rules({ families, mode, age, pods, commands }: StatusFacts): Answer {
  const inTheWay = pods.obstacles.map((message) => ({ message, command: commands.preflight }));
  const changed = pods.differences.map((message) => ({ message, command: commands.diff }));
  const wrong = families.flatMap(({ family, drift, unverified }) => {
    const command = LOOK_AT_RULES[mode]?.[family] ?? 'nft list ruleset';
    return [
      ...drift.map((message) => ({ message, command })),
      ...(unverified ? [{ message: `${family}: the kernel cannot be read back: ${unverified}`, command }] : []),
    ];
  });
  const problems = [...wrong, ...inTheWay, ...changed];
  const verified = families.map(({ verifiedAt }) => verifiedAt);
  const differences = families.reduce((sum, { driftTotal }) => sum + driftTotal, 0);
  const untold = differences - families.reduce((sum, { drift }) => sum + drift.length, 0);
  if (verified.length === 0 || verified.some((at) => at === undefined))
    return {
      value: null,
      figure: '–',
      detail: 'not compared yet',
      ageSeconds: null,
      verdict: 'none',
      problems,
      untold,
    };
  return {
    value: differences,
    figure: String(differences),
    detail: 'differences between what was written and what the kernel holds',
    ageSeconds: Math.max(...verified.map((at) => age(at!))),
    problems,
    untold,
  };
}

const LOOK_AT_RULES: Readonly<Record<string, Readonly<Record<IpFamily, string>>>> = {
  iptables: { IPv4: 'iptables-save | grep KUBE-', IPv6: 'ip6tables-save | grep KUBE-' },
  nftables: { IPv4: 'nft list table ip nodeplane', IPv6: 'nft list table ip6 nodeplane' },
  ipvs: { IPv4: 'ipvsadm -Ln', IPv6: 'ipvsadm -Ln' },
};

function conntrack({ conntrack: table }: StatusFacts): Answer {
  if (!table) return { value: null, figure: '–', detail: 'the kernel does not say', ageSeconds: null, verdict: 'none' };
  const { count, max } = table;
  const share = max > 0 ? count / max : 0;
  const percent = `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
  const problems =
    share < CONNTRACK_FULL
      ? []
      : [
          {
            message: `The table of tracked connections is ${percent} full: new connections are dropped when it is`,
            command: 'conntrack -S; sysctl net.netfilter.nf_conntrack_max',
          },
        ];
  return { value: share, figure: percent, detail: `${count} of ${max} connections`, ageSeconds: 0, problems };
}

function nodes({ peers, leftRoutes, standsByFor, commands }: StatusFacts): Answer {
  const none = { value: null, figure: '–', ageSeconds: null, verdict: 'none' } as const;
  if (!peers) {
    if (leftRoutes === '') return { ...none, detail: 'routes are somebody else’s' };
    const message = `Those of an agent with --routes are still here, and nobody keeps them right: ${leftRoutes}`;
    const problems = [{ message, command: REMOVE_LEFT_ROUTES }];
    return { ...none, detail: 'routes are somebody else’s, and there are old ones of nodeplane', problems };
  }
  if (standsByFor !== '') return { ...none, detail: 'another agent looks after them' };
  const { total, wrong, peers: told, problems: texts, ageSeconds } = peers;
  const problems = [
    ...texts.map((message) => ({ message, command: commands.routes })),
    ...told.flatMap(({ node, family, problem }) =>
      problem === null ? [] : [{ message: `${node}, ${family}: ${problem}`, command: commands.routes }],
    ),
  ];
  const ways = total === 0 ? 'no other node has pods' : 'ways to the pods of other nodes are in order';
  const detail = texts.length > 0 ? `${ways}; ${texts[0]}` : ways;
  const untold = wrong - told.filter(({ problem }) => problem !== null).length;
  return { value: total - wrong, figure: `${total - wrong} of ${total}`, detail, ageSeconds, problems, untold };
}

function changes({ changes: { count, last, what } }: StatusFacts): Answer {
  const detail =
    last === undefined ? 'no Service or endpoint since the start' : `changes since the start; last: ${what}`;
  return { value: count, figure: String(count), detail, ageSeconds: last ?? null };
}

/** Opens a file at a line, of `web.yaml:12`. */
function fileCommand(folder: string, where: string): string {
  const [, file = '', line = '1'] = /^(.*?)(?::(\d+))?$/s.exec(where) ?? [];
  return `less +${line} ${shellWord(`${folder}/${file}`)}`;
}

/** `Service demo/web` as kubectl takes it; all of the resource where no object is named. */
function kubectlWords({ where, object }: SourceProblem): string {
  if (object === undefined) return `${shellWord(where)} -A`;
  const [, kind = '', namespace, name = ''] = /^(\S+) (?:([^/]*)\/)?(.*)$/.exec(object) ?? [];
  return `${shellWord(kind)}${namespace ? ` -n ${shellWord(namespace)}` : ''} ${shellWord(name)}`;
}
