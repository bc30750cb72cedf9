import { attempt, isMapping, parseJson } from '../../core/index.ts';

/** Plugins that ask the configurations behind their own, or those that they name, for a pod's network. */
const FORWARDING_TYPES: ReadonlySet<unknown> = new Set(['multus', 'multus-shim']);

/**
 * The configurations that a container runtime takes before ours: of a directory it takes the first by name (libcni, go-cni). Those
 * that lead to our plugin are not among them, whoever wrote them, nor what sorts behind one that does.
 *
 * @param names of the files in the directory; others than configurations are passed over
 * @param ours the name of our file
 * @param type of our plugin in configurations
 * @param read the text of a file; undefined: it is gone, or cannot be read
 */
export function configurationsInFront(
  names: readonly string[],
  { ours, type, read }: { ours: string; type: string; read: (name: string) => string | undefined },
): readonly string[] {
  const inFront: string[] = [];
  for (const name of names.filter((one) => /\.(?:conf|conflist|json)$/.test(one) && one < ours).sort()) {
    const text = read(name);
    const content = text === undefined ? undefined : attempt(() => parseJson(text));
    if (mentions(content, type)) break;
    if (!passesOn(content)) inFront.push(name);
  }
  return inFront;
}

/** A plugin of this type, at any depth: plugins of a list, what a plugin asks in turn. */
function mentions(value: unknown, type: string): boolean {
  if (Array.isArray(value)) return value.some((one) => mentions(one, type));
  return isMapping(value) && (value.type === type || Object.values(value).some((one) => mentions(one, type)));
}

/** To whatever configuration comes next, unless it names some. */
function passesOn(content: unknown): boolean {
  if (!isMapping(content)) return false;
  const plugins = Array.isArray(content.plugins) ? content.plugins.filter(isMapping) : [content];
  return plugins.some(({ type, delegates }) => FORWARDING_TYPES.has(type) && delegates === undefined);
}
