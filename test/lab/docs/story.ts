/** What is not the same in each run, on each machine. */
const VARYING =
  /\b(seconds|count|\w+Seconds|retryInMs|version|server|source|written|lock|holder|resource)=("(?:\\.|[^"\\])*"|\S+)/g;

/** Why a request failed: several fail at once, and any of them is told first. */
const REASON = /(resource=… .*err=)"(?:\\.|[^"\\])*"/;

/** A resource whose list was not the first to be complete may be missing in that line. */
const LISTS = /(All objects are read).*/;

/** Where /run is no file system of its own, as on no node, the agent says this besides. */
const NOT_ON_NODES = 'A second agent on this node would not be noticed';

/** What both families say, when they are at work at the same time. */
const BOTH_FAMILIES = / full=true | are removed;/;

/**
 * A log as text, without its times and what else differs from run to run: lines that then are equal to the one before are left
 * out (a change may come in two parts), and families that are written at the same time are in one order.
 */
export function masked(log: string): string[] {
  const lines: string[] = [];
  for (const line of log.trim().split('\n')) {
    const said = line
      .replace(/^\S+Z +/, '')
      .replace(VARYING, '$1=…')
      .replace(LISTS, '$1')
      .replace(REASON, '$1…');
    if (said !== lines.at(-1) && !said.includes(NOT_ON_NODES)) lines.push(said);
  }
  for (let at = 0; at < lines.length; at++) {
    let end = at;
    while (BOTH_FAMILIES.test(lines[end] ?? '')) end++;
    lines.splice(at, end - at, ...lines.slice(at, end).sort());
    at = Math.max(at, end);
  }
  return lines;
}

/** The logs that a page shows, each under the words in bold before it. */
export function chaptersOf(page: string): ReadonlyMap<string, string> {
  const found = page.matchAll(/^\*\*([^*]+)\*\*[^`]*?\n```log\n([\s\S]*?)```$/gm);
  return new Map([...found].map(([, name, log]) => [name!, log!]));
}
