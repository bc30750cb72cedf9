import { knownFamily } from '../../knowledge/index.ts';
import type { Asked } from '../asked.ts';
import type { Finding, Report } from '../report.ts';

/** Has the agent write what differs, which it does at its next look anyway, and shows who made it differ. */
export function repairing({ commands }: Asked['knowledge']): readonly string[] {
  return [`${commands.diff} --repair`, `${commands.status}   # who changed it`];
}

/** A change is written within a second when nothing is in the way. */
const JUST_NOW_SECONDS = 3;

/**
 * Tells that the kernel is not as the plan has it, and why: the agent cannot write it, writes it this moment, or somebody else changed it.
 *
 * @param text what differs
 * @param tell tells the finding; a change that is being written is told as something that cannot be
 */
export function tellDrift(
  { target, knowledge }: Asked,
  text: string,
  report: Report,
  tell: (finding: Finding) => void,
): void {
  const service = target.service!;
  const { name, changedSecondsAgo } = service.service;
  const failing = knownFamily(knowledge, target.family)!.failing;
  const { leftOut } = service.port;
  if (failing || leftOut !== null) {
    const why = leftOut ?? `syncs fail for ${Math.round(failing!.seconds)} s: ${failing!.reason}`;
    tell({ code: 'agent-behind', text: `${text}; ${why}`, remedy: [knowledge.commands.status] });
  } else if (changedSecondsAgo !== null && changedSecondsAgo < JUST_NOW_SECONDS) {
    const when = `${name} changed ${changedSecondsAgo.toFixed(1)} s ago and is being written`;
    report.cannotTell('rules', `${text}; ${when}`);
  } else tell({ code: 'drift', text, remedy: repairing(knowledge) });
}
