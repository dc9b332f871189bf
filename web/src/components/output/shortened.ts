/** More characters than this are no sentence: people have them folded. */
export const LONG = 400;

/** The beginning of a text that is told in full elsewhere. */
export function shortened(text: string, most = LONG): string {
  return text.length > most ? `${text.slice(0, most).trimEnd()}…` : text;
}
