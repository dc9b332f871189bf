/** What to type to send a message to a session. The key may hold anything: it is quoted for a shell. */
export function sendCommand(session: string): string {
  const key = /^[\w@%+=:,./-]+$/.test(session) ? session : `'${session.replaceAll("'", `'\\''`)}'`;
  return `ostinato session send ${key} "hello" --task TASK`;
}
