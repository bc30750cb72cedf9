import { type Knowledge, knownFamily } from '../knowledge/index.ts';
import type { Target } from './asked.ts';
import type { Report } from './report.ts';

const NOT_YET = 'the agent serves no Services yet';

/** Rules of an agent that has ended stay, and may serve what the one that runs does not know yet. */
export function tellNotReady(report: Report): void {
  report.cannotTell('agent', `${NOT_YET}; what was written before it started goes on`);
  report.warn('agent-not-ready', NOT_YET);
}

/** Says what the agent has written for the family. False: it has a Service to serve, and has written nothing yet. */
export function lookAtAgent(knowledge: Knowledge, target: Target, report: Report): boolean {
  const family = knownFamily(knowledge, target.family);
  if (!family && target.service) {
    tellNotReady(report);
    return false;
  }
  if (!family) {
    const text = `the agent does not serve ${target.family}, or not yet`;
    report.stage('agent', 'unknown', `${text}: what the kernel does was looked at`);
    report.warn('agent-not-ready', text);
    return true;
  }
  const { failing, drift, writtenSecondsAgo } = family;
  const written =
    writtenSecondsAgo === null ? 'nothing written yet' : `last wrote ${Math.round(writtenSecondsAgo)} s ago`;
  const evidence = drift.map((value) => ({ source: 'agent', object: 'differences found', value }));
  const text = failing
    ? `its syncs fail for ${Math.round(failing.seconds)} s: ${failing.reason}`
    : `mode ${knowledge.mode}, ${written}`;
  report.stage('agent', failing ? 'unknown' : 'ok', text, evidence);
  return true;
}
