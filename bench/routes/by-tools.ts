import { execFileSync } from 'node:child_process';
import { formatCidr, formatIp, formatMac } from '../../src/core/index.ts';
import type { Hop, RouteObject, RouteOperation } from '../../src/routes/index.ts';
import type { TestNamespace } from '../../test/lab/namespace.ts';

/** One run of a program, with a line for each object. */
interface ToolRun {
  readonly program: 'ip' | 'bridge';
  readonly input: string;
}

/** The names of links by their index. */
export type LinkNames = ReadonlyMap<number, string>;

const PROTOCOL = 78;

/** What an operator would run for the same objects: iproute2, in the order of the operations. */
export function toolRuns(operations: readonly RouteOperation[], links: LinkNames): readonly ToolRun[] {
  const runs: { program: ToolRun['program']; lines: string[] }[] = [];
  for (const { object } of operations) {
    const program = object.kind === 'fdb' ? 'bridge' : 'ip';
    if (runs.at(-1)?.program !== program) runs.push({ program, lines: [] });
    runs.at(-1)!.lines.push(lineOf(object, links));
  }
  return runs.map(({ program, lines }) => ({ program, input: `${lines.join('\n')}\n` }));
}

/** Runs the programs one after the other. Throws when a line of theirs is refused. */
export function runTools(namespace: TestNamespace, runs: readonly ToolRun[]): void {
  for (const { program, input } of runs) {
    execFileSync(program, ['-n', namespace.name, '-batch', '-'], { input, stdio: ['pipe', 'ignore', 'pipe'] });
  }
}

function lineOf(object: RouteObject, links: LinkNames): string {
  switch (object.kind) {
    case 'nexthop':
      return `nexthop add id ${object.id} ${hopText(object, links)} protocol ${PROTOCOL}`;
    case 'route':
      return routeLine(object, links);
    case 'neighbour':
      return `neighbour replace ${formatIp(object.ip)} lladdr ${formatMac(object.mac)} dev ${links.get(object.index)} nud permanent`;
    case 'fdb':
      return `fdb replace ${formatMac(object.mac)} dev ${links.get(object.index)} dst ${formatIp(object.remote!)} self permanent`;
  }
}

function routeLine(route: Extract<RouteObject, { kind: 'route' }>, links: LinkNames): string {
  const destination = formatCidr(route.destination);
  switch (route.way) {
    case 'other':
      throw new Error('nobody makes such a route');
    case 'unreachable':
      return `route add unreachable ${destination} protocol ${PROTOCOL} metric ${0x4e500000}`;
    case 'nexthop':
      return `route add ${destination} nhid ${route.id} protocol ${PROTOCOL}`;
    case 'gateway':
      return `route add ${destination} ${hopText(route, links)} protocol ${PROTOCOL}`;
    case 'device':
      return `route add ${destination} dev ${links.get(route.outInterface)} protocol ${PROTOCOL}`;
  }
}

function hopText({ gateway, outInterface, onlink }: Hop, links: LinkNames): string {
  return `via ${formatIp(gateway)} dev ${links.get(outInterface)}${onlink ? ' onlink' : ''}`;
}
