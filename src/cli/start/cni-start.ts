import { fileURLToPath } from 'node:url';
import { runBuiltCode } from './built-code.ts';

// dist/nodeplane-cni.

const program = fileURLToPath(import.meta.url);
try {
  runBuiltCode(program, undefined, { short: true });
} catch (error) {
  const { code, path, message } = error as NodeJS.ErrnoException;
  if (code === undefined || path !== `${program}.code`) throw error;
  // An I/O failure of the specification: what the runtime shows is this text.
  const msg = `Cannot read the plugin's code: "${path}" must lie beside "${program}", as the build puts it there`;
  process.stdout.write(`${JSON.stringify({ cniVersion: '1.0.0', code: 5, msg, details: message })}\n`);
  process.exit(1);
}
