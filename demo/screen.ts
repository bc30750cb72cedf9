/** Where the demo writes: lines with colour on a terminal, plain ones elsewhere. */
export interface Screen {
  /** Announces what is being done; the line is replaced by `done` on a terminal and left out elsewhere. */
  doing(text: string): void;
  /** Says that it is done, with the seconds since the start at the right edge. */
  done(text: string): void;
  /** Says that something turned out wrong. */
  failed(text: string): void;
  heading(text: string): void;
  /** An indented line. */
  line(text?: string): void;
  paint(style: Style, text: string): string;
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'cyan';

const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, cyan: 36 };
const WIDTH = 98;
const CLEAR_LINE = '\r\x1b[K';

/** A screen on `stream`; NO_COLOR (https://no-color.org) is respected. */
export function createScreen(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Screen {
  const startedAt = performance.now();
  const onTerminal = stream.isTTY === true;
  const colour = onTerminal && !env.NO_COLOR;
  const paint = (style: Style, text: string) => (colour ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text);
  let announced = false;
  const write = (text: string) => {
    stream.write(`${announced ? CLEAR_LINE : ''}${text}`);
    announced = false;
  };
  return {
    paint,
    doing(text) {
      if (!onTerminal) return;
      write(paint('dim', `  · ${text} …`));
      announced = true;
    },
    done(text) {
      const seconds = `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
      const gap = ' '.repeat(Math.max(2, WIDTH - 4 - text.length - seconds.length));
      write(`  ${paint('green', '✓')} ${text}${gap}${paint('dim', seconds)}\n`);
    },
    failed: (text) => write(`  ${paint('red', '✗')} ${text}\n`),
    heading: (text) => write(`\n${paint('bold', text)}\n\n`),
    line: (text = '') => write(text === '' ? '\n' : `      ${text}\n`),
  };
}
