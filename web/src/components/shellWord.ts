/** A word as a shell reads it. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** `ostinato schedule trigger nightly`, whatever the name: one that begins like a flag stands behind `--`. */
export const commandFor = (verb: string, name: string): string =>
  ["ostinato", verb, ...(name.startsWith("-") ? ["--"] : []), shellWord(name)].join(" ");

/** All words before `--`, which is none within quotes. */
const BEFORE_NAMES = /^((?:[^'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")*?) -- /;

/** A command with another flag: before the names that stand behind `--`. */
export function withFlag(command: string, flag: string): string {
  const before = BEFORE_NAMES.exec(command)?.[1];
  return before === undefined ? `${command} ${flag}` : `${before} ${flag}${command.slice(before.length)}`;
}
