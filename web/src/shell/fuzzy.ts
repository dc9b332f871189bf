/** Whether the letters of what is typed are in a text in their order, and how well: lower is better; null is not at all.
 *  Letters that follow each other, and beginnings of words, count as better. */
export function fuzzy(text: string, typed: string): number | null {
  const hay = text.toLowerCase();
  let cost = 0;
  for (const word of typed.toLowerCase().split(/\s+/).filter(Boolean)) {
    const whole = hay.indexOf(word);
    const found = whole >= 0 ? (isStart(hay, whole) ? 0 : 1) : scattered(hay, word);
    if (found === null) return null;
    cost += found;
  }
  return cost;
}

/** The order of things whose name was typed: the very name, then those that begin with it, then what fits by its letters.
 *  What fits in no way that is known here was found by something else than its name, and comes last. */
export function byName<T>(typed: string, nameOf: (item: T) => string): (one: T, other: T) => number {
  const text = typed.toLowerCase();
  const rank = (item: T): [number, number] => {
    const name = nameOf(item);
    if (name === typed) return [0, 0];
    if (name.toLowerCase() === text) return [1, 0];
    const cost = fuzzy(name, typed) ?? Infinity;
    return [name.toLowerCase().startsWith(text) ? 2 : 3, cost];
  };
  return (one, other) => {
    const [kind, cost] = rank(one);
    const [otherKind, otherCost] = rank(other);
    return kind !== otherKind ? kind - otherKind : cost === otherCost ? 0 : cost - otherCost;
  };
}

const isStart = (hay: string, at: number): boolean => at === 0 || !/[a-z0-9]/.test(hay.charAt(at - 1));

/** Each letter after the one before it; each gap costs, the more the longer it is. */
function scattered(hay: string, word: string): number | null {
  if (word.length < 2) return null;
  let at = -1;
  let cost = 2;
  for (const letter of word) {
    const next = hay.indexOf(letter, at + 1);
    if (next < 0) return null;
    if (at >= 0 && next > at + 1) cost += 1 + Math.min(4, (next - at) / 4);
    at = next;
  }
  // Letters from all over a long text are no find.
  return cost > 3 * word.length ? null : cost;
}
