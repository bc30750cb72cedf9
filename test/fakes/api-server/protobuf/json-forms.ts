/** The messages whose JSON has another form than a mapping of their fields, and how the message is made of that form. */
export const WRITTEN_OTHERWISE: Readonly<Record<string, (value: unknown, path: string) => object>> = {
  // Upstream leaves the fraction away: in JSON there is none either.
  '.meta.Time': (value, path) => ({ seconds: Math.floor(millisecondsOf(value, path) / 1000), nanos: 0 }),
  '.meta.MicroTime': microTime,
  '.meta.Quantity': (value) => ({ string: String(value) }),
  '.meta.IntOrString': (value) =>
    typeof value === 'number' ? { type: 0, intVal: value, strVal: '' } : { type: 1, intVal: 0, strVal: value },
  // The fields are in JSON also within protobuf.
  '.meta.FieldsV1': (value) => ({ Raw: Buffer.from(JSON.stringify(value)) }),
};

function microTime(value: unknown, path: string): object {
  const seconds = Math.floor(millisecondsOf(value, path) / 1000);
  const fraction = /\.(\d+)/.exec(String(value))?.[1] ?? '';
  return { seconds, nanos: Number(fraction.padEnd(6, '0').slice(0, 6)) * 1000 };
}

function millisecondsOf(value: unknown, path: string): number {
  const milliseconds = Date.parse(String(value));
  if (Number.isNaN(milliseconds)) throw new Error(`${path} is no time: ${JSON.stringify(value)}`);
  return milliseconds;
}
