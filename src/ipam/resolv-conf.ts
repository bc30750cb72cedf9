import { readFileSync } from 'node:fs';
import { NodeplaneError } from '../core/index.ts';

/** Name resolution settings as CNI results carry them. */
export interface DnsSettings {
  readonly nameservers?: readonly string[];
  readonly domain?: string;
  readonly search?: readonly string[];
  readonly options?: readonly string[];
}

/** Reads the keywords of a resolv.conf(5) text that CNI knows; other lines and comments are skipped. */
export function parseResolvConf(text: string): DnsSettings {
  const nameservers: string[] = [];
  const search: string[] = [];
  const options: string[] = [];
  let domain: string | undefined;
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.trim().split(/\s+/);
    if (values.length === 0) continue;
    if (keyword === 'nameserver') nameservers.push(values[0]!);
    else if (keyword === 'domain') domain = values[0]!;
    else if (keyword === 'search') search.push(...values);
    else if (keyword === 'options') options.push(...values);
  }
  return dnsSettings({ nameservers, domain, search, options });
}

/** The settings without those that are empty. One without any key says nothing, and gives way to what others say. */
export function dnsSettings({
  nameservers = [],
  domain,
  search = [],
  options = [],
}: { readonly [Key in keyof DnsSettings]: DnsSettings[Key] | undefined }): DnsSettings {
  return {
    ...(nameservers.length > 0 && { nameservers }),
    ...(domain && { domain }),
    ...(search.length > 0 && { search }),
    ...(options.length > 0 && { options }),
  };
}

/** Reads such a file. Throws ERR_IPAM_STORE when it cannot be read. */
export function readResolvConf(path: string): DnsSettings {
  try {
    return parseResolvConf(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new NodeplaneError('ERR_IPAM_STORE', `Cannot read the file named by ipam.resolvConf, "${path}"`, {
      facts: { path },
      cause,
    });
  }
}
