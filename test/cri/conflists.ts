import type { ConfList } from '../lab/lab.ts';

type Feature = 'portMappings' | 'bandwidth';
const REFERENCE_PLUGINS: Readonly<Record<Feature, string>> = { portMappings: 'portmap', bandwidth: 'bandwidth' };

/**
 * Ways to have a feature that a runtime asks for in `runtimeConfig`: the plugin serves it in its own entry, or the
 * reference plugin for it follows in the list. Each with its name, for `describe.each`.
 */
export function waysToHave(feature: Feature): [way: string, change: (conflist: ConfList) => ConfList][] {
  const capabilities = { [feature]: true };
  return [
    [
      'in the plugin’s own entry',
      (conflist) => {
        const [own, ...others] = conflist.plugins;
        return { ...conflist, plugins: [{ ...own!, capabilities }, ...others] };
      },
    ],
    [
      `by the reference plugin ${REFERENCE_PLUGINS[feature]} after it`,
      (conflist) => ({
        ...conflist,
        plugins: [...conflist.plugins, { type: REFERENCE_PLUGINS[feature], capabilities }],
      }),
    ],
  ];
}
