/** Some clusters have 5,000 nodes; beyond this the values change too much to be worth holding. */
const CAPACITY = 20_000;
/**
 * In characters of JSON. What is longer is seldom the same twice, and somebody may write thousands of a megabyte each, which
 * would be held after their objects are gone.
 */
const LONGEST = 1000;

/**
 * Gives equal values the same memory: the node name and the conditions of 50,000 endpoints are a few distinct values.
 * Forgets everything when full, so that values of long gone objects do not pile up.
 */
export class SharedValues {
  readonly #values = new Map<string, unknown>();

  text(value: string): string {
    return value.length > LONGEST ? value : this.#share(value, value);
  }

  /** For plain JSON data that nobody changes. */
  value<T extends object>(value: T): T {
    // Every item takes two characters and a comma, at least: a list of 20,000 ports need not be written to be too long.
    if (Array.isArray(value) && value.length > LONGEST / 3) return value;
    const key = JSON.stringify(value);
    return key.length > LONGEST ? value : this.#share(key, value);
  }

  #share<T>(key: string, value: T): T {
    const known = this.#values.get(key);
    if (known !== undefined && typeof known === typeof value) return known as T;
    if (this.#values.size >= CAPACITY) this.#values.clear();
    this.#values.set(key, value);
    return value;
  }
}
