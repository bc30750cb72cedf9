import { fileURLToPath } from 'node:url';
import { runBuiltCode } from './built-code.ts';

// dist/nodeplane and dist/kube-proxy.

const program = fileURLToPath(import.meta.url);
try {
  runBuiltCode(program);
} catch (error) {
  const { code, path } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT' || path !== `${program}.code`) throw error;
  process.stderr.write(
    `Cannot read the code of "${program}": "${path}" must lie beside it, as the build puts it there\n`,
  );
  process.exit(1);
}
