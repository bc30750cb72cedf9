/** Text that comes in pieces. */
export interface LineCutter {
  take(bytes: Uint8Array): void;
  /** What follows the last line feed is a line too. */
  end(): void;
}

/** Hands on UTF-8 line by line, without line feeds, as it comes: what a program prints need never be there as a whole. */
export function lineCutter(read: (line: string) => void): LineCutter {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let begun = '';
  return {
    take(bytes) {
      const text = begun + decoder.decode(bytes, { stream: true });
      let start = 0;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
        read(text.slice(start, end));
        start = end + 1;
      }
      begun = text.slice(start);
    },
    end() {
      const last = begun + decoder.decode();
      if (last !== '') read(last);
    },
  };
}
