import type { Extension, Option, ParsedRule } from './parse-rule.ts';

/** A rule as iptables-save prints it, without `-A CHAIN`: what `parseRule` reads. */
export function ruleText({ own, matches, target }: ParsedRule): string {
  const does = target && [target.goto ? '-g' : '-j', quoted(target.name), optionsText(target.options)];
  return [optionsText(own), ...matches.map(matchText), ...(does ?? [])].filter(Boolean).join(' ');
}

/** `-m tcp --dport 80` */
export function matchText({ name, options }: Extension): string {
  return ['-m', quoted(name), optionsText(options)].filter(Boolean).join(' ');
}

function optionsText(options: readonly Option[]): string {
  return options
    .flatMap(({ name, values, inverted }) => [...(inverted ? ['!'] : []), name, ...values.map(quoted)])
    .join(' ');
}

/** xtables_save_string, libxtables/xtables.c: what is more than a plain word stands in quotes. */
function quoted(value: string): string {
  return /^[^\s"'\\!-][^\s"'\\]*$/.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`;
}
